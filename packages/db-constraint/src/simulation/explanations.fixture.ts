import type { OwnerReference } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import { displayKey } from "../shadow/resource-key.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import type { Records, TrackedResource } from "./records.fixture.ts";

/** What users have requested. Anything else must follow from a rule. */
export class Requests {
	/** The uids of the incarnations that users have deleted. */
	readonly deletions = new Set<string>();
	/** The uids of the incarnations whose finalizers users have removed. */
	readonly releases = new Set<string>();
	/** The namespaces that users have deleted, as `deployment/namespace`. */
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
		return "a user deleted it";
	}
	const namespace = `${deployment.info.name}/${resource.id?.tenancy?.namespace ?? ""}`;
	if (requests.namespaces.has(namespace) && records.markedNamespaces.has(namespace)) {
		return "its namespace is being deleted";
	}
	const isYielding = records.isInMarkedNamespace(tracked);
	for (const { text, uid: target, rule } of references) {
		const cascades = rule === OnDelete.CASCADE || (rule === OnDelete.BLOCK && isYielding);
		if (cascades && records.isDeleting(text, target)) {
			return `${text} is being deleted`;
		}
	}
	const owners = resource.ownerReferences;
	if (
		owners.length > 0 &&
		owners.every((owner) => records.isInvalid(tracked, owner)) &&
		owners.some(({ unsetOnDelete }) => !unsetOnDelete)
	) {
		return "its owners are lost";
	}
	return undefined;
}

/** Why a change that no user made violates promise 4, or `undefined`. */
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
		return "it has references that nobody requested";
	}
	const { ownerReferences: had } = before.resource;
	const { ownerReferences: has } = after.resource;
	const lost = had.filter((owner) => !has.some((other) => sameOwner(owner, other)));
	for (const owner of lost) {
		if (!records.isInvalid(before, owner)) {
			return `its owner ${owner.name} was removed without reason`;
		}
		if (!(has.length > 0 || owner.unsetOnDelete || isMarkedForDeletion(after.resource))) {
			return `its last owner ${owner.name} was removed, and the resource still exists`;
		}
	}
	const finalizers = finalizersOf(after.resource);
	const released = finalizersOf(before.resource).filter(
		(finalizer) => finalizer !== referencesFinalizer && !finalizers.includes(finalizer),
	);
	return released.length > 0 && !requests.releases.has(before.uid)
		? `its finalizers ${released} were removed`
		: undefined;
}

function sameOwner(a: OwnerReference, b: OwnerReference): boolean {
	return a.uid === b.uid && a.name === b.name && a.region === b.region;
}
