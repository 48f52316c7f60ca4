import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { asReferences, type LocatedReference } from "../schema/locate-references.ts";
import type { RecordedReferences } from "../shadow/recorded-references.ts";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/**
 * What the references of one resource hold. A field that has no target of its own takes the record of another field only
 * if a new schema has left that to it: if no reference of the resource has it, neither one of those that are planned nor
 * one that the write removes.
 */
export class HeldReferences {
	readonly #recorded: RecordedReferences;
	readonly #fields: () => readonly LocatedReference[];
	/** The fields, by target, computed on first use. */
	#byTarget: ReadonlyMap<string, readonly LocatedReference[]> | undefined;

	/** @param fields - the fields of the resource by the active schema, as it is planned and as it is stored. */
	constructor(recorded: RecordedReferences, fields: () => readonly LocatedReference[]) {
		this.#recorded = recorded;
		this.#fields = fields;
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
	 * The record of a reference by its rule, perhaps of another field: several with one rule are one reference. If a new schema
	 * gives the field the rule by which another one is recorded, and that another rule, then what the field holds or has lost
	 * itself counts.
	 */
	recordOf(reference: LocatedReference): OutgoingReference | undefined {
		const record = this.#recorded.of(reference);
		if (record === undefined || record.path === reference.path || record.targetUid === "") {
			return record;
		}
		const fields = this.#fieldsOf(reference.target, record.path);
		if (fields.some(({ rule }) => rule === reference.rule)) {
			return record;
		}
		const own = this.#ownOf(reference);
		if (own !== undefined && !isPlanted("take the record of a field by its former rule")) {
			const { targetUid, deploymentUid } = own;
			const isSame = targetUid === record.targetUid && deploymentUid === record.deploymentUid;
			return isSame ? record : undefined;
		}
		const hasLost = this.#recorded.lost(reference) !== undefined;
		return hasLost && fields.length > 0 ? undefined : record;
	}

	/**
	 * The record by which a reference holds its target with the rule of an earlier schema: that of one of its fields, or one
	 * that is left to it.
	 */
	earlierOf(reference: LocatedReference): OutgoingReference | undefined {
		const all = this.#recorded.allTo(reference.target);
		const { target, rule } = reference;
		return (
			this.#ownOf(reference) ??
			all.find(({ path }) => this.#fieldsOf(target, path).some((each) => each.rule === rule)) ??
			all.find((each) => !this.#isOfOther(each, reference))
		);
	}

	/** What the field itself holds, by whatever rule. */
	#ownOf({ path, target }: LocatedReference): OutgoingReference | undefined {
		return this.#recorded.allTo(target).find((each) => each.path === path);
	}

	/** Whether another reference has the record: by its rule, or by the field, whose rule a new schema has changed. */
	#isOfOther(record: OutgoingReference, { target, rule }: LocatedReference): boolean {
		return (
			!isPlanted("take what another field holds") &&
			this.#fieldsTo(target).some(
				(each) => each.rule === record.rule || (each.path === record.path && each.rule !== rule),
			)
		);
	}

	#fieldsOf(target: KeyLike, path: string): readonly LocatedReference[] {
		return this.#fieldsTo(target).filter((each) => each.path === path);
	}

	#fieldsTo(target: KeyLike): readonly LocatedReference[] {
		this.#byTarget ??= Map.groupBy(
			isPlanted("know one field of each reference") ? asReferences(this.#fields()) : this.#fields(),
			(each) => keyString(each.target),
		);
		return this.#byTarget.get(keyString(target)) ?? [];
	}
}
