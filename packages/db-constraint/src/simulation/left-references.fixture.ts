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
	readonly #before: TrackedResource;
	readonly #after: TrackedResource;
	readonly #outgoing: readonly OutgoingReference[];
	/** The references before the write, by the active schema; none if they are derived. */
	readonly #named: readonly TrackedReference[];

	/**
	 * @param before - the resource before the write; `after` if nothing may be left.
	 * @param outgoing - what the shadow records after the write.
	 */
	constructor(
		before: TrackedResource,
		after: TrackedResource,
		outgoing: readonly OutgoingReference[],
	) {
		this.#before = before;
		this.#after = after;
		this.#outgoing = outgoing;
		const { deployment, schema } = after;
		this.#named =
			schema === undefined || before.schema === schema
				? []
				: referencesOf(deployment, schema, before.resource, before);
	}

	/**
	 * The resource with the references that its shadow must record: those by the active schema or, for those that are left,
	 * what holds their targets still. As long as some are left, it has no schema.
	 */
	get expected(): TrackedResource {
		const { references } = this.#after;
		const recorded = references.map((held) => this.#earlierOf(held) ?? held);
		const isAnyLeft = recorded.some((held, at) => held !== references[at]);
		return isAnyLeft ? { ...this.#after, schema: undefined, references: recorded } : this.#after;
	}

	/** Whether a reference may be recorded as one without a target: then it had none before. */
	isUnrecorded(held: TrackedReference): boolean {
		return this.#isNamed(held) && this.#heldBefore(held) === undefined;
	}

	/** Whether a reference is not new: it takes over the incarnation that one of the schema before holds. */
	isHeld(held: TrackedReference, uid: string): boolean {
		return this.#isNamed(held) && this.#heldBefore(held)?.uid === uid;
	}

	/** The reference of the schema before that a reference still has as its record. */
	#earlierOf(held: TrackedReference): TrackedReference | undefined {
		if (!this.#isNamed(held) || this.#outgoing.some((record) => isOf(record, held))) {
			return undefined;
		}
		const before = this.#heldBefore(held);
		const earlier = before && { ...before, path: held.path };
		const isLeft = this.#outgoing.some(
			(record) =>
				earlier !== undefined &&
				isOf(record, earlier) &&
				(earlier.isSuspended || record.targetUid === earlier.uid),
		);
		return isLeft ? earlier : undefined;
	}

	/** The reference of the schema before whose incarnation one has. */
	#heldBefore(held: TrackedReference): TrackedReference | undefined {
		const { references } = this.#after;
		const earlier = heldBefore(held, this.#before.references, references, this.#named);
		return earlier !== undefined && isResolved(earlier) ? earlier : undefined;
	}

	#isNamed({ text, path }: TrackedReference): boolean {
		return this.#named.some(
			(each) => each.text === text && each.path === path && !isResolved(each),
		);
	}
}
