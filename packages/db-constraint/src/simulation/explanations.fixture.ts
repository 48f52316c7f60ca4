import type { OwnerReference } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import { displayKey } from "../resource-key.ts";
import { referencesFinalizer } from "../shadow.ts";
import type { Records, TrackedResource } from "./records.fixture.ts";

/** What users have asked for: all that may happen without a rule. */
export class Requests {
	/** The incarnations that a user has asked to delete, by uid. */
	readonly deletions = new Set<string>();
	/** The incarnations whose finalizers of users a user has taken away, by uid. */
	readonly releases = new Set<string>();
	/** Namespaces that a user has asked to delete, as `deployment/namespace`. */
	readonly namespaces = new Set<string>();
}

/** Why a resource may be deleted now, or `undefined`: promise 4. */
export function explainDeletion(
	records: Records,
	requests: Requests,
	tracked: TrackedResource,
): string | undefined {
	const { uid, resource, references, deployment } = tracked;
	if (requests.deletions.has(uid)) {
		return "a user asked for it";
	}
	const namespace = `${deployment.info.name}/${resource.id?.tenancy?.namespace ?? ""}`;
	if (requests.namespaces.has(namespace) && records.markedNamespaces.has(namespace)) {
		return "its namespace goes";
	}
	const yields = records.isInMarkedNamespace(tracked);
	for (const { text, uid: target, rule } of references) {
		const cascades = rule === OnDelete.CASCADE || (rule === OnDelete.BLOCK && yields);
		if (cascades && records.isDeleting(text, target)) {
			return `${text} goes`;
		}
	}
	const owners = resource.ownerReferences;
	if (
		owners.length > 0 &&
		owners.every((owner) => records.isInvalid(tracked, owner)) &&
		owners.some(({ unsetOnDelete }) => !unsetOnDelete)
	) {
		return "its owners are gone";
	}
	return undefined;
}

/** What is wrong with a change that no user made, or `undefined`: promise 4. */
export function unexplainedChange(
	records: Records,
	requests: Requests,
	before: TrackedResource,
	after: TrackedResource,
): string | undefined {
	for (const { path, target, text, rule, uid } of before.references) {
		const isKept = after.references.some((held) => held.text === text && held.rule === rule);
		if (!isKept && !(rule === OnDelete.UNSET && records.isDeleting(text, uid))) {
			return `${path}, to ${displayKey(target)}, was cleared without reason`;
		}
	}
	if (after.references.length > before.references.length) {
		return "it got references that nobody asked for";
	}
	const { ownerReferences: had } = before.resource;
	const { ownerReferences: has } = after.resource;
	const lost = had.filter((owner) => !has.some((other) => sameOwner(owner, other)));
	for (const owner of lost) {
		if (!records.isInvalid(before, owner)) {
			return `its owner ${owner.name} was taken away without reason`;
		}
		if (!(has.length > 0 || owner.unsetOnDelete || isMarkedForDeletion(after.resource))) {
			return `its last owner ${owner.name} was taken away, and it lives`;
		}
	}
	const finalizers = finalizersOf(after.resource);
	const released = finalizersOf(before.resource).filter(
		(finalizer) => finalizer !== referencesFinalizer && !finalizers.includes(finalizer),
	);
	return released.length > 0 && !requests.releases.has(before.uid)
		? `its finalizers ${released} were taken away`
		: undefined;
}

function sameOwner(a: OwnerReference, b: OwnerReference): boolean {
	return a.uid === b.uid && a.name === b.name && a.region === b.region;
}
