import type { OutgoingReference, Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import type { Requests } from "./explanations.fixture.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { Records } from "./records.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

/**
 * What the promises say about references when a deployment is restored from a backup, or its Deployment is deleted.
 *
 * - A target that exists after the restore of its deployment too is never removed while it is referenced. Its shadow
 *   names the referencing deployments again once these have established their references with the successor.
 * - A target that is lost in a restore is not a deleted one: the references to it stay as they are, until they are
 *   recorded as unresolved.
 * - A restored deployment holds what it held both in the backup and before the restore. Other references of the backup
 *   hold nothing until the deployment is established under its new uid, for their targets were released.
 * - A deployment whose Deployment was deleted holds nothing in other deployments until it is established under its
 *   new uid. References to it stay, except that UNSET references under the deleted uid may be cleared.
 *
 * References that hold nothing are suspended.
 */
export class ObservedLosses {
	readonly #records: Records;
	readonly #requests: Requests;

	constructor(records: Records, requests: Requests) {
		this.#records = records;
		this.#requests = requests;
	}

	/**
	 * Remembers what a deployment stores now.
	 *
	 * @param shadowed - the texts of the resources that have shadows there.
	 * @returns a function that is called when the storage is restored to this state.
	 */
	backUp(deployment: SimulatedDeployment, shadowed: () => readonly string[]): () => void {
		const { activeSchemas, markedNamespaces, shadows } = this.#records;
		const resources = this.#storedBy(deployment);
		const kept = new Map(shadowed().map((text) => [text, shadows.get(text)]));
		const schema = activeSchemas.get(deployment);
		const { refused } = this.#records.identityOf(deployment);
		const marked = unitsOf(deployment, markedNamespaces);
		const namespaces = unitsOf(deployment, this.#requests.namespaces);
		const requested = [this.#requests.deletions, this.#requests.releases].map(
			(uids) =>
				[uids, new Set(resources.flatMap(({ uid }) => (uids.has(uid) ? uid : [])))] as const,
		);
		return () => {
			const held = this.#heldBy(deployment);
			this.#remember(deployment);
			this.#remove(deployment, shadowed());
			for (const [text, shadow] of kept) {
				if (shadow !== undefined) {
					shadows.set(text, shadow);
				}
			}
			for (const unit of marked) {
				markedNamespaces.add(unit);
			}
			replaceUnits(deployment, this.#requests.namespaces, namespaces);
			if (schema !== undefined) {
				activeSchemas.set(deployment, { ...schema, hasChanged: true });
			}
			for (const [uids, before] of requested) {
				for (const { uid } of resources) {
					if (!before.has(uid)) {
						uids.delete(uid);
					}
				}
			}
			const identity = this.#records.identityOf(deployment);
			identity.former.add(identity.uid);
			identity.state = "restored";
			identity.refused = refused;
			for (const tracked of resources) {
				this.#records.store({
					...tracked,
					references: tracked.references.map((reference) =>
						this.#holds(deployment, reference, held) ? reference : suspended(reference),
					),
				});
			}
			this.#suspendLost(deployment);
		};
	}

	/** A Deployment was deleted. */
	deploymentDeleted(uid: string): void {
		for (const [deployment, identity] of this.#records.identities) {
			if (identity.has(uid)) {
				identity.deleted.add(uid);
				if (identity.uid === uid) {
					identity.former.add(uid);
				} else if (identity.state === "settled") {
					continue;
				}
				identity.state = "deleted";
				for (const tracked of this.#storedBy(deployment)) {
					this.#change(tracked, (held) =>
						this.#isForeign(deployment, held) ? suspended(held) : held,
					);
				}
			}
		}
	}

	/** A deployment whose Deployment is deleted has no servers any longer. */
	gone(deployment: SimulatedDeployment, shadowed: readonly string[]): void {
		this.#remember(deployment);
		this.#remove(deployment, shadowed);
		this.#records.identityOf(deployment).state = "gone";
		this.#suspendLost(deployment);
	}

	/** What a new reference names, if nothing is promised about that: `undefined` otherwise. */
	suspends(
		{ deployment }: TrackedResource,
		held: TrackedReference,
		recorded: OutgoingReference | undefined,
	): TrackedReference | undefined {
		const target = this.#records.storageOf(held.target);
		if (!recorded?.targetUid || target === undefined || target === deployment) {
			return undefined;
		}
		const reference = { ...held, uid: recorded.targetUid };
		if (this.#records.identityOf(deployment).state === "deleted") {
			return suspended(reference);
		}
		// It was established with a deployment that has lost the target since.
		const { lastStates } = this.#records.identityOf(target);
		const before = lastStates.get(recorded.deploymentUid)?.resources.get(held.text);
		return before?.uid === recorded.targetUid &&
			this.#records.resources.get(held.text)?.uid !== recorded.targetUid
			? suspended(reference)
			: undefined;
	}

	/** A suspended reference, as its shadow records it now: it is promised something again once it is established. */
	resumed(
		{ deployment }: TrackedResource,
		held: TrackedReference,
		recorded: OutgoingReference | undefined,
	): TrackedReference {
		if (!held.isSuspended || recorded === undefined) {
			return held;
		}
		const { isSuspended: _, ...reference } = held;
		if (recorded.targetUid === "") {
			return { ...reference, uid: unresolved };
		}
		const { identities } = this.#records;
		const target = this.#records.storageOf(held.target);
		const to = target && identities.get(target);
		return identities.get(deployment)?.state === "settled" &&
			to?.state !== "gone" &&
			to?.uid === recorded.deploymentUid &&
			!to.former.has(to.uid)
			? { ...reference, uid: recorded.targetUid }
			: held;
	}

	/** Whether the shadow of a target names the deployment that references it, or need not do so yet. */
	isNamed(
		referrer: TrackedResource,
		held: TrackedReference,
		recorded: OutgoingReference | undefined,
		shadow: Shadow | undefined,
	): boolean {
		const identity = this.#records.identityOf(referrer.deployment);
		const target = this.#records.storageOf(held.target);
		const isUnreported =
			target !== undefined &&
			target !== referrer.deployment &&
			this.#records.identityOf(target).lastStates.has(recorded?.deploymentUid ?? "");
		// The deployment itself, and a deletion that has started, query the successor for the former uids too.
		const acceptsFormer =
			target === referrer.deployment || shadow?.lifecycle === Lifecycle.DELETING;
		const isIts = (uid: string) => (acceptsFormer ? identity.has(uid) : identity.isNamedBy(uid));
		return (
			isUnreported ||
			(shadow?.sources.some(({ deployment }) => isIts(deployment?.uid ?? "")) ?? false)
		);
	}

	/** The resources whose references must be established with a deployment, according to its record. */
	reported(deployment: SimulatedDeployment): readonly TrackedResource[] {
		const { identities } = this.#records;
		const { establishedBy } = this.#records.identityOf(deployment);
		return [...identities].flatMap(([other, { uid }]) =>
			other !== deployment && establishedBy.includes(uid) ? this.#storedBy(other) : [],
		);
	}

	/** Whether the reference is to another deployment. */
	#isForeign(deployment: SimulatedDeployment, { target, uid }: TrackedReference): boolean {
		return uid !== unresolved && this.#records.storageOf(target) !== deployment;
	}

	#storedBy(deployment: SimulatedDeployment): readonly TrackedResource[] {
		return [...this.#records.resources.values()].filter((each) => each.deployment === deployment);
	}

	/** The targets in other deployments that a deployment holds, by text and uid. */
	#heldBy(deployment: SimulatedDeployment): ReadonlySet<string> {
		const held = new Set<string>();
		for (const { resource, references } of this.#storedBy(deployment)) {
			for (const each of isDeletionIrrevocable(resource) ? [] : references) {
				if (!each.isSuspended && this.#isForeign(deployment, each)) {
					held.add(`${each.text} ${each.uid}`);
				}
			}
		}
		return held;
	}

	#holds(
		deployment: SimulatedDeployment,
		reference: TrackedReference,
		held: ReadonlySet<string>,
	): boolean {
		const { text, uid } = reference;
		return (
			!this.#isForeign(deployment, reference) ||
			(held.has(`${text} ${uid}`) && this.#records.resources.get(text)?.uid === uid)
		);
	}

	#remember(deployment: SimulatedDeployment): void {
		const stored = this.#storedBy(deployment);
		const deleting = stored.filter(
			({ text, uid }) => this.#records.shadows.get(text)?.lifecycle === Lifecycle.DELETING && uid,
		);
		const identity = this.#records.identityOf(deployment);
		identity.lastStates.set(identity.uid, {
			resources: new Map(stored.map((each) => [each.text, each])),
			deleting: new Set(deleting.map(({ uid }) => uid)),
		});
	}

	#remove(deployment: SimulatedDeployment, shadowed: readonly string[]): void {
		const { activeSchemas, markedNamespaces, shadows } = this.#records;
		for (const { text } of this.#storedBy(deployment)) {
			this.#records.remove(text);
		}
		for (const text of shadowed) {
			shadows.delete(text);
		}
		replaceUnits(deployment, markedNamespaces, []);
		activeSchemas.delete(deployment);
	}

	/** Suspends the references of other deployments to what a deployment does not store any longer. */
	#suspendLost(deployment: SimulatedDeployment): void {
		for (const tracked of [...this.#records.resources.values()]) {
			if (tracked.deployment !== deployment) {
				this.#change(tracked, (held) => {
					const isLost =
						this.#records.storageOf(held.target) === deployment &&
						held.uid !== unresolved &&
						this.#records.resources.get(held.text)?.uid !== held.uid;
					return isLost ? suspended(held) : held;
				});
			}
		}
	}

	#change(
		tracked: TrackedResource,
		change: (reference: TrackedReference) => TrackedReference,
	): void {
		const references = tracked.references.map(change);
		if (references.some((each, at) => each !== tracked.references[at])) {
			this.#records.store({ ...tracked, references });
		}
	}
}

function suspended(reference: TrackedReference): TrackedReference {
	return { ...reference, isSuspended: true };
}

/** The namespaces of a deployment among `deployment/namespace`s. */
function unitsOf({ info }: SimulatedDeployment, units: ReadonlySet<string>): readonly string[] {
	return [...units].filter((unit) => unit.startsWith(`${info.name}/`));
}

function replaceUnits(
	deployment: SimulatedDeployment,
	units: Set<string>,
	next: readonly string[],
): void {
	for (const unit of unitsOf(deployment, units)) {
		units.delete(unit);
	}
	for (const unit of next) {
		units.add(unit);
	}
}
