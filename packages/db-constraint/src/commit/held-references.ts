import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import type { RecordedReferences } from "../shadow/recorded-references.ts";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/**
 * What the references of one resource hold. A field that has no target of its own takes the record of another field only
 * if a new schema has left that to it: if no reference of the resource has it, neither one of those that are planned nor
 * one that the write removes.
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

	/**
	 * The record of what a reference holds. Another reference of the resource may name the same target, and hold an
	 * incarnation of it in another deployment.
	 */
	of(reference: LocatedReference): OutgoingReference | undefined {
		if (isPlanted("take what another reference of the target holds")) {
			return this.#recorded.allTo(reference.target)[0];
		}
		const own = this.recordOf(reference);
		return own?.targetUid ? own : this.earlierOf(reference);
	}

	/**
	 * The record of a reference by its rule, perhaps of another field: several with one rule are one reference. What a field
	 * has lost is not found again in another field whose rule a new schema gives it, if that has another rule now.
	 */
	recordOf(reference: LocatedReference): OutgoingReference | undefined {
		const record = this.#recorded.of(reference);
		const isOfField = record === undefined || record.path === reference.path;
		if (isOfField || record.targetUid === "" || this.#recorded.lost(reference) === undefined) {
			return record;
		}
		const isLeft = this.#referencesTo(reference.target).every(
			({ path, rule }) => path !== record.path || rule === record.rule,
		);
		return isLeft ? record : undefined;
	}

	/** The record by which a reference holds its target with the rule of an earlier schema. */
	earlierOf(reference: LocatedReference): OutgoingReference | undefined {
		const all = this.#recorded.allTo(reference.target);
		const own = all.find(({ path }) => path === reference.path);
		return own ?? all.find((each) => !this.#isOfOther(each, reference));
	}

	/** Whether another reference has the record: by its rule, or by the field, whose rule a new schema has changed. */
	#isOfOther(record: OutgoingReference, { target, rule }: LocatedReference): boolean {
		return (
			!isPlanted("take what another field holds") &&
			this.#referencesTo(target).some(
				(each) => each.rule === record.rule || (each.path === record.path && each.rule !== rule),
			)
		);
	}

	#referencesTo(target: KeyLike): readonly LocatedReference[] {
		this.#byTarget ??= Map.groupBy(this.#references(), (each) => keyString(each.target));
		return this.#byTarget.get(keyString(target)) ?? [];
	}
}
