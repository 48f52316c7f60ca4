import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { type LocatedReference, nameOfLocated } from "../schema/locate-references.ts";
import { fieldOfPath } from "../shadow/field-of-path.ts";
import type { FieldRecords, RecordedReferences } from "../shadow/recorded-references.ts";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/**
 * What the references of one resource hold. Several fields may name one target, and hold incarnations of it in different
 * deployments.
 *
 * Invariant: each field has a record of its own, which stays with it whatever rules a new schema gives to it and to others. A
 * field without a record that a new schema has made, perhaps by renaming another one, takes a record whose field the resource
 * no longer has. Otherwise it takes that of another field that has its rule: the target is established by that rule.
 */
export class HeldReferences {
	readonly #recorded: RecordedReferences;
	readonly #planned: readonly LocatedReference[];
	readonly #stored: (() => readonly LocatedReference[]) | undefined;
	/** The references that are planned and those that are stored, by target, computed on first use. */
	#byTarget: ReadonlyMap<string, readonly LocatedReference[]> | undefined;
	/** Those that are planned, as `nameOfLocated`, computed on first use. */
	#plannedNames: ReadonlySet<string> | undefined;
	/** Those that are stored, likewise. */
	#storedNames: ReadonlySet<string> | undefined;
	/** What fields without a record take, by target and rule, computed on first use: thousands of fields may name one target. */
	readonly #others = new Map<string, FieldRecords>();

	/**
	 * @param planned - the references of the resource by the active schema, as it is planned.
	 * @param stored - the same, as it is stored, if it is written: what a write adds is no field that a schema has renamed.
	 */
	constructor(
		recorded: RecordedReferences,
		planned: readonly LocatedReference[],
		stored?: () => readonly LocatedReference[],
	) {
		this.#recorded = recorded;
		this.#planned = planned;
		this.#stored = stored;
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
		const { established, missing } = hasNone(own) ? this.#ofOther(reference) : own;
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

	/** The records for a field without one. */
	#ofOther(reference: LocatedReference): FieldRecords {
		const isAdded = this.#isAdded(reference);
		const name = `${keyString(reference.target)} ${reference.rule} ${isAdded}`;
		let other = this.#others.get(name);
		if (other === undefined) {
			const left = isAdded ? {} : this.#leftBy(reference);
			other = hasNone(left) ? this.#ofSame(reference, isAdded) : left;
			this.#others.set(name, other);
		}
		return other;
	}

	#isAdded(reference: LocatedReference): boolean {
		if (this.#stored === undefined || isPlanted("take fields that users add for renamed ones")) {
			return false;
		}
		this.#storedNames ??= new Set(this.#stored().map(nameOfLocated));
		return !this.#storedNames.has(nameOfLocated(reference));
	}

	#isPlanned(reference: LocatedReference): boolean {
		this.#plannedNames ??= new Set(this.#planned.map(nameOfLocated));
		return this.#plannedNames.has(nameOfLocated(reference));
	}

	/** The record of a field that the resource no longer has: a new schema may have renamed it, or what contains it. */
	#leftBy({ rule, target }: LocatedReference): FieldRecords {
		if (isPlanted("forget what renamed fields hold")) {
			return {};
		}
		const fields = new Set(this.#referencesTo(target).map(({ path }) => fieldOfPath(path)));
		const left = this.#recorded.allTo(target).filter(({ path }) => !fields.has(fieldOfPath(path)));
		const ofRule = left.filter((each) => each.rule === rule);
		const records = ofRule.length > 0 ? ofRule : left;
		return { established: records.find(isHeld), missing: records.find(isMissing) };
	}

	/**
	 * The records of another field with the same target and rule, preferably of one that has the target. What that has lost, and
	 * the decision to keep it, is no matter of a field that the write adds, unless it takes the place of the other one.
	 */
	#ofSame({ rule, target }: LocatedReference, isAdded: boolean): FieldRecords {
		if (isPlanted("establish what another field with the rule holds")) {
			return {};
		}
		const same = this.#referencesTo(target).filter((each) => each.rule === rule);
		const isOwn = isAdded && !isPlanted("copy what another field has lost to one that users add");
		const lost = isOwn ? same.filter((each) => !this.#isPlanned(each)) : same;
		return (
			same.map((each) => this.#recorded.inField(each)).find(({ established }) => established) ??
			lost.map((each) => this.#recorded.inField(each)).find(({ missing }) => missing) ??
			{}
		);
	}

	/** The records of a target that have it, of all fields. */
	#heldOf(target: KeyLike): readonly OutgoingReference[] {
		return this.#recorded.allTo(target).filter(isHeld);
	}

	#referencesTo(target: KeyLike): readonly LocatedReference[] {
		this.#byTarget ??= Map.groupBy([...this.#planned, ...(this.#stored?.() ?? [])], (each) =>
			keyString(each.target),
		);
		return this.#byTarget.get(keyString(target)) ?? [];
	}
}

function hasNone({ established, missing }: FieldRecords): boolean {
	return established === undefined && missing === undefined;
}

function isHeld({ targetUid }: OutgoingReference): boolean {
	return targetUid !== "";
}

function isMissing({ targetUid }: OutgoingReference): boolean {
	return targetUid === "";
}
