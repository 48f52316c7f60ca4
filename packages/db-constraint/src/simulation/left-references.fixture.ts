import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { heldBefore, isOf, isResolved, referencesOf } from "./derived-references.fixture.ts";
import type { TrackedReference, TrackedResource } from "./tracked-resources.fixture.ts";

/**
 * What a write leaves for the derivation of a new schema: the references that the resource had before by the active schema,
 * and that its shadow does not record yet. The write need not wait for their targets. The shadow records each by the
 * schema before, as long as it holds its target by that, or as one without a target.
 *
 * Nothing may be left once the active schema is complete.
 */
export class LeftReferences {
	readonly #before: readonly TrackedReference[];
	readonly #after: readonly TrackedReference[];
	readonly #outgoing: readonly OutgoingReference[];
	/** The references before the write, by the active schema; none if they are derived. */
	readonly #named: readonly TrackedReference[];

	/**
	 * @param before - the resource before the write; `undefined` if nothing may be left.
	 * @param outgoing - what the shadow records after the write.
	 */
	constructor(
		before: TrackedResource | undefined,
		after: TrackedResource | undefined,
		outgoing: readonly OutgoingReference[],
	) {
		this.#before = before?.references ?? [];
		this.#after = after?.references ?? [];
		this.#outgoing = outgoing;
		this.#named =
			before === undefined || after === undefined || before.schema === after.schema
				? []
				: referencesOf(after.deployment, after.schema, before.resource, before);
	}

	/** Whether a reference is left. */
	get isAny(): boolean {
		return this.#after.some((held) => this.earlierOf(held) !== undefined);
	}

	/** Whether a reference is left, and the shadow records all others by the active schema. */
	get isAll(): boolean {
		const references = distinct(this.#after.map((held) => this.earlierOf(held) ?? held));
		return (
			this.isAny &&
			references.length === this.#outgoing.length &&
			references.every((held) => this.#outgoing.some((record) => isOf(record, held)))
		);
	}

	/** The reference of the schema before that a reference still has as its record. */
	earlierOf(held: TrackedReference): TrackedReference | undefined {
		if (!this.#isNamed(held) || this.#outgoing.some((record) => isOf(record, held))) {
			return undefined;
		}
		const earlier = this.#heldBefore(held);
		const isLeft = this.#outgoing.some(
			(record) =>
				earlier !== undefined &&
				isOf(record, earlier) &&
				(earlier.isSuspended || record.targetUid === earlier.uid),
		);
		return isLeft ? earlier : undefined;
	}

	/** Whether a reference may be recorded as one without a target: then it had none before. */
	isUnrecorded(held: TrackedReference): boolean {
		return this.#isNamed(held) && this.#heldBefore(held) === undefined;
	}

	/** The reference of the schema before whose incarnation one has. */
	#heldBefore(held: TrackedReference): TrackedReference | undefined {
		const earlier = heldBefore(held, this.#before, [...this.#named, ...this.#after]);
		return earlier !== undefined && isResolved(earlier) ? earlier : undefined;
	}

	#isNamed({ text, rule }: TrackedReference): boolean {
		return this.#named.some(
			(each) => each.text === text && each.rule === rule && !isResolved(each),
		);
	}
}

/** The references without those that have the same record. */
export function distinct(references: readonly TrackedReference[]): readonly TrackedReference[] {
	return [...new Map(references.map((each) => [`${each.text} ${each.rule}`, each])).values()];
}
