import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	fieldsOf,
	heldBefore,
	isOf,
	isResolved,
	type ReferenceField,
	recordIn,
	referencesOf,
} from "./derived-references.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

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
	/** The fields before and after the write, by the active schema; none if they are derived. */
	readonly #fields: readonly ReferenceField[];

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
		const { deployment, schema, resource } = after;
		const isDerived = schema === undefined || before.schema === schema;
		this.#named = isDerived ? [] : referencesOf(deployment, schema, before.resource, before);
		this.#fields = isDerived
			? []
			: [before.resource, resource].flatMap((each) => fieldsOf(deployment, schema, each));
	}

	/**
	 * The resource with the references that its shadow must record: those by the active schema or, for those that are left,
	 * what holds their targets still. As long as some are left, it has no schema.
	 */
	get expected(): TrackedResource {
		const { references } = this.#after;
		const recorded = references.map((held) => this.#earlierOf(held) ?? this.#lostAs(held) ?? held);
		const isAnyLeft = recorded.some((held, at) => held !== references[at]);
		return isAnyLeft
			? { ...this.#after, schema: undefined, references: this.#asRecorded(recorded) }
			: this.#after;
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
		const earlier = this.#heldBefore(held);
		const isLeft = this.#outgoing.some(
			(record) =>
				earlier !== undefined &&
				isOf(record, earlier) &&
				(earlier.isSuspended || record.targetUid === earlier.uid),
		);
		return isLeft ? earlier : undefined;
	}

	/** The reference without a target that one is still recorded as: only a derivation finds what another field leaves to it. */
	#lostAs(held: TrackedReference): TrackedReference | undefined {
		const isRecorded = recordIn(this.#outgoing, held)?.targetUid === "";
		return isRecorded && this.#isNamed(held)
			? this.#before.references.find(
					({ text, rule, uid }) => text === held.text && rule === held.rule && uid === unresolved,
				)
			: undefined;
	}

	/** The reference of the schema before whose incarnation one has. */
	#heldBefore(held: TrackedReference): TrackedReference | undefined {
		const earlier = heldBefore(held, this.#before.references, this.#fields);
		return earlier !== undefined && isResolved(earlier) ? earlier : undefined;
	}

	#isNamed({ text, rule }: TrackedReference): boolean {
		return this.#named.some(
			(each) => each.text === text && each.rule === rule && !isResolved(each),
		);
	}

	/** The references that have the same record once, in the field that it names. */
	#asRecorded(references: readonly TrackedReference[]): readonly TrackedReference[] {
		const distinct = new Map(
			references.map((each) => [`${each.text} ${each.rule} ${isResolved(each)}`, each]),
		);
		return [...distinct.values()].map((each) => {
			const { path = each.path } = recordIn(this.#outgoing, each) ?? {};
			return { ...each, path };
		});
	}
}
