import type { OwnerReference, Resource } from "@plinth/proto";
import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	type ResourceKey,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion } from "@plinth/resource";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { keyOf, keyString } from "../shadow/resource-key.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";

/** A reference of a stored resource, and the incarnation of its target when it was committed. */
export interface TrackedReference {
	readonly path: string;
	readonly target: ResourceKey;
	/** `keyString` of the target. */
	readonly text: string;
	readonly rule: OnDelete;
	/** `unresolved` if a new schema derived the reference, and its target did not exist. */
	readonly uid: string;
}

/** The uid of a target that did not exist when a schema became active. */
export const unresolved = "unresolved";

/** A stored resource. */
export interface TrackedResource {
	readonly deployment: SimulatedDeployment;
	/** `keyString` of its key: unique among all deployments. */
	readonly text: string;
	readonly uid: string;
	readonly resource: Resource;
	/** The schema of its references: the active one, once they are derived by it. */
	readonly schema: SimulatedSchema;
	readonly references: readonly TrackedReference[];
}

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
	/** The resources that reference a target, by `keyString`s. */
	readonly #referrers = new Map<string, Set<string>>();
	/** Namespaces that are being deleted, as `deployment/namespace`. */
	readonly markedNamespaces = new Set<string>();
	/** The versions that deployments have announced, by their names. */
	readonly announced = new Map<string, string>();
	/** The schema that every commit asserts, by deployment. */
	readonly activeSchemas = new Map<SimulatedDeployment, ActiveSchema>();

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
		const region = reference.region || ownee.deployment.info.region;
		const text = keyString(keyOf(reference, region));
		return (
			owner === undefined ||
			owner.text !== text ||
			isMarkedForDeletion(owner.resource) ||
			this.isDeleting(text, reference.uid) ||
			(reference.requiresOwnerReference &&
				!owner.references.some((held) => held.text === ownee.text))
		);
	}
}
