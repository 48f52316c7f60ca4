import type { OwnerReference } from "@plinth/proto";
import {
	Lifecycle,
	type ResourceKey,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { keyOf, keyString } from "../shadow/resource-key.ts";
import { Identity } from "./identities.fixture.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { TrackedReference, TrackedResource } from "./tracked-resources.fixture.ts";

/** A schema that has become active. */
export interface ActiveSchema {
	readonly schema: SimulatedSchema;
	/** Whether all references are derived by it. */
	readonly complete: boolean;
	/** Whether it differs from the first one. */
	readonly hasChanged: boolean;
}

/** The stored state of all deployments, according to their commits. */
export class Records {
	readonly resources = new Map<string, TrackedResource>();
	readonly byUid = new Map<string, TrackedResource>();
	/** By `keyString` of their resource. */
	readonly shadows = new Map<string, Shadow>();
	/** The uids of the incarnations that are gone, and were irrevocably being deleted. */
	readonly deleted = new Set<string>();
	/** The resources that reference a target, by `keyString`s. */
	readonly #referrers = new Map<string, Set<string>>();
	/** Namespaces that are being deleted, as `deployment/namespace`. */
	readonly markedNamespaces = new Set<string>();
	/** The versions that deployments have announced, by their uids: a successor may have another one. */
	readonly announced = new Map<string, string>();
	/** The schema that every commit asserts, by deployment. */
	readonly activeSchemas = new Map<SimulatedDeployment, ActiveSchema>();
	readonly identities = new Map<SimulatedDeployment, Identity>();

	/** The uids of a deployment. */
	identityOf(deployment: SimulatedDeployment): Identity {
		const known = this.identities.get(deployment) ?? new Identity();
		this.identities.set(deployment, known);
		return known;
	}

	/** The deployment that stores a resource, by its key; `undefined` before it has committed anything. */
	storageOf({ group, region }: Pick<ResourceKey, "group" | "region">) {
		return [...this.identities.keys()].find(
			({ info, service }) => info.region === region && service.type.type.group === group,
		);
	}

	/** Creates or replaces a resource. */
	store(tracked: TrackedResource): void {
		this.remove(tracked.text);
		this.resources.set(tracked.text, tracked);
		this.byUid.set(tracked.uid, tracked);
		for (const { text } of tracked.references) {
			const referrers = this.#referrers.get(text) ?? new Set();
			this.#referrers.set(text, referrers.add(tracked.text));
		}
	}

	/** Removes a resource. */
	remove(text: string): void {
		const tracked = this.resources.get(text);
		if (tracked !== undefined) {
			this.resources.delete(text);
			this.byUid.delete(tracked.uid);
			for (const { text: target } of tracked.references) {
				this.#referrers.get(target)?.delete(text);
			}
		}
	}

	/** All references to the target with this `keyString`, except those of resources whose deletion is irrevocable. */
	*referencing(target: string): Generator<readonly [TrackedResource, TrackedReference]> {
		for (const text of this.#referrers.get(target) ?? []) {
			const tracked = this.resources.get(text);
			if (tracked === undefined || isDeletionIrrevocable(tracked.resource)) {
				continue;
			}
			for (const held of tracked.references) {
				if (held.text === target) {
					yield [tracked, held];
				}
			}
		}
	}

	/**
	 * Whether an incarnation was irrevocably being deleted when its deployment lost a uid: that counts for a reference
	 * which was established under that uid, and not with the successor yet, until the deployment that references it refuses
	 * that uid.
	 */
	wasDeleting(
		referrer: SimulatedDeployment,
		target: ResourceKey,
		targetUid: string,
		deploymentUid: string,
	): boolean {
		if (this.identityOf(referrer).refused.has(deploymentUid)) {
			return false;
		}
		const storage = this.storageOf(target);
		const before = storage && this.identities.get(storage)?.lastStates.get(deploymentUid);
		return before?.deleting.has(targetUid) ?? false;
	}

	/**
	 * Whether an incarnation was irrevocably deleted, and is gone before the rules of a reference to it were applied. Its
	 * deployment waits for that, unless the Deployment of the one with the reference was deleted, whose servers may not know yet.
	 */
	wasDeleted(referrer: SimulatedDeployment, target: ResourceKey, targetUid: string): boolean {
		const storage = this.storageOf(target);
		const refused = storage && this.identities.get(storage)?.refused;
		return this.deleted.has(targetUid) && (refused?.has(this.identityOf(referrer).uid) ?? false);
	}

	/** Whether the deployment of a target had a uid that was deleted. */
	isDeploymentDeleted(target: ResourceKey, deploymentUid: string): boolean {
		const storage = this.storageOf(target);
		return (storage && this.identities.get(storage)?.deleted.has(deploymentUid)) ?? false;
	}

	/** Whether this incarnation is irrevocably being deleted. */
	isDeleting(text: string, uid: string): boolean {
		const shadow = this.shadows.get(text);
		return shadow?.lifecycle === Lifecycle.DELETING && shadow.uid === uid;
	}

	/** Whether a resource is in a namespace that is being deleted. */
	isInMarkedNamespace({ deployment, resource }: TrackedResource): boolean {
		const namespace = resource.id?.tenancy?.namespace ?? "";
		return this.markedNamespaces.has(`${deployment.info.name}/${namespace}`);
	}

	/** Whether an owner is lost: permanently deleted, or without the required reference to the ownee. */
	isInvalid(ownee: TrackedResource, reference: OwnerReference): boolean {
		const owner = this.byUid.get(reference.uid);
		const isDeleting = this.isDeleting(this.#ownerText(ownee, reference), reference.uid);
		return isDeleting || this.#isInvalid(ownee, reference, owner);
	}

	/**
	 * Whether an owner was lost when its deployment lost a uid: that counts as long as the successor has not responded
	 * that it is valid, and the deployment of the ownee does not refuse that uid. If the Deployment was deleted, all that it
	 * stored was lost.
	 */
	wasInvalid(
		ownee: TrackedResource,
		reference: OwnerReference,
		shadow: Shadow | undefined,
	): boolean {
		const region = reference.region || ownee.deployment.info.region;
		const storage = this.storageOf({ group: reference.type?.group ?? "", region });
		const identity = storage && this.identities.get(storage);
		const isValidated = shadow?.metaOwners.some(
			({ ownerUid, valid, deploymentUid }) =>
				ownerUid === reference.uid && valid && deploymentUid === identity?.uid,
		);
		const wasDeleted = shadow?.metaOwners.some(
			({ ownerUid, deploymentUid }) =>
				ownerUid === reference.uid && identity?.deleted.has(deploymentUid),
		);
		const text = this.#ownerText(ownee, reference);
		const { refused } = this.identityOf(ownee.deployment);
		return (
			wasDeleted ||
			(!isValidated &&
				[...(identity?.lastStates ?? [])].some(
					([uid, { resources, deleting }]) =>
						!refused.has(uid) &&
						(deleting.has(reference.uid) || this.#isInvalid(ownee, reference, resources.get(text))),
				))
		);
	}

	#ownerText(ownee: TrackedResource, reference: OwnerReference): string {
		return keyString(keyOf(reference, reference.region || ownee.deployment.info.region));
	}

	#isInvalid(
		ownee: TrackedResource,
		reference: OwnerReference,
		owner: TrackedResource | undefined,
	): boolean {
		return (
			owner?.uid !== reference.uid ||
			owner.text !== this.#ownerText(ownee, reference) ||
			isMarkedForDeletion(owner.resource) ||
			(reference.requiresOwnerReference &&
				!owner.references.some((held) => held.text === ownee.text))
		);
	}
}
