import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import type { FieldRecords, RecordedReferences } from "../shadow/recorded-references.ts";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/**
 * What the references of one resource hold. Several fields may name one target, and hold incarnations of it in different
 * deployments.
 *
 * Invariant: each field has a record of its own, which stays with it whatever rules a new schema gives to it and to others. A
 * field without a record, which is new, takes that of another one that has its rule: the target is established by that rule.
 */
export class HeldReferences {
	readonly #recorded: RecordedReferences;
	readonly #references: () => readonly LocatedReference[];
	/** The references, by target, computed on first use. */
	#byTarget: ReadonlyMap<string, readonly LocatedReference[]> | undefined;

	/** @param references - those of the resource by the active schema, as it is planned and as it is stored. */
	constructor(recorded: RecordedReferences, references: () => readonly LocatedReference[]) {
		this.#recorded = recorded;
		this.#references = references;
	}

	/** The record of what a reference holds, by its rule or by that of an earlier schema. */
	of(reference: LocatedReference): OutgoingReference | undefined {
		if (isPlanted("take what another reference of the target holds")) {
			return this.#heldOf(reference.target)[0];
		}
		return this.#recordsOf(reference).established;
	}

	/** The record of a reference by its rule, with a target or without. */
	recordOf(reference: LocatedReference): OutgoingReference | undefined {
		const { established, missing } = this.#recordsOf(reference);
		const record = established ?? missing;
		return record?.rule === reference.rule ? record : undefined;
	}

	/** The record by which a reference holds its target with the rule of an earlier schema. */
	earlierOf(reference: LocatedReference): OutgoingReference | undefined {
		const { established } = this.#recordsOf(reference);
		return established?.rule === reference.rule ? undefined : established;
	}

	/** The record of what a reference has lost, by whatever rule. */
	lostOf(reference: LocatedReference): OutgoingReference | undefined {
		if (isPlanted("forget what was lost when a rule changes")) {
			return undefined;
		}
		const { missing } = this.#recordsOf(reference);
		if (isPlanted("take what another field has lost")) {
			return missing ?? this.#recorded.allTo(reference.target).find(isMissing);
		}
		return missing;
	}

	#recordsOf(reference: LocatedReference): FieldRecords {
		const own = this.#ownOf(reference);
		const { established, missing } =
			own.established === undefined && own.missing === undefined ? this.#ofSame(reference) : own;
		// A wrong type never has a target.
		return reference.wrongType === undefined ? { established, missing } : { missing };
	}

	#ownOf({ path, rule, target }: LocatedReference): FieldRecords {
		const own = this.#recorded.inField({ path, target });
		if (isPlanted("take the record of a field by its former rule")) {
			const established = this.#heldOf(target).find((each) => each.rule === rule);
			return established === undefined ? own : { established };
		}
		if (isPlanted("take what another field holds")) {
			return { ...own, established: own.established ?? this.#heldOf(target)[0] };
		}
		return own;
	}

	/** The records of another field with the same target and rule, preferably of one that has the target. */
	#ofSame({ rule, target }: LocatedReference): FieldRecords {
		if (isPlanted("establish what another field with the rule holds")) {
			return {};
		}
		const records = this.#referencesTo(target)
			.filter((each) => each.rule === rule)
			.map((each) => this.#recorded.inField(each));
		return (
			records.find(({ established }) => established) ?? records.find(({ missing }) => missing) ?? {}
		);
	}

	/** The records of a target that have it, of all fields. */
	#heldOf(target: KeyLike): readonly OutgoingReference[] {
		return this.#recorded.allTo(target).filter((each) => !isMissing(each));
	}

	#referencesTo(target: KeyLike): readonly LocatedReference[] {
		this.#byTarget ??= Map.groupBy(this.#references(), (each) => keyString(each.target));
		return this.#byTarget.get(keyString(target)) ?? [];
	}
}

function isMissing({ targetUid }: OutgoingReference): boolean {
	return targetUid === "";
}
