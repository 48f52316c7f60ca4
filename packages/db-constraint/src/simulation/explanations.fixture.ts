import type { OwnerReference } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import { displayKey, keyString } from "../shadow/resource-key.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import type { Records } from "./records.fixture.ts";
import type { TrackedReference, TrackedResource } from "./tracked-resources.fixture.ts";

/** What users have requested. Anything else must follow from a rule. */
export class Requests {
	/** The uids of the incarnations that users have deleted. */
	readonly deletions = new Set<string>();
	/** The uids of the incarnations whose finalizers users have removed. */
	readonly releases = new Set<string>();
	/** The namespaces that users have deleted, as `deployment/namespace`. */
	readonly namespaces = new Set<string>();
}

/**
 * Why a resource may be deleted now, or `undefined`: promise 4.
 *
 * @param shadow - its shadow before the deletion.
 */
export function explainDeletion(
	records: Records,
	requests: Requests,
	tracked: TrackedResource,
	shadow: Shadow | undefined,
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
	for (const held of references) {
		const { rule } = held;
		const cascades = rule === OnDelete.CASCADE || (rule === OnDelete.BLOCK && isYielding);
		if (cascades && isBeingDeleted(records, tracked, held, shadow)) {
			return `${held.text} is being deleted`;
		}
	}
	const owners = resource.ownerReferences;
	if (
		owners.length > 0 &&
		owners.every(
			(owner) => records.isInvalid(tracked, owner) || records.wasInvalid(tracked, owner, shadow),
		) &&
		owners.some(({ unsetOnDelete }) => !unsetOnDelete)
	) {
		return "its owners are lost";
	}
	return undefined;
}

/** Whether the target of a reference is being deleted, was by a predecessor of its deployment, or is gone since. */
function isBeingDeleted(
	records: Records,
	{ deployment }: TrackedResource,
	{ target, text, uid }: TrackedReference,
	shadow: Shadow | undefined,
): boolean {
	const wasDeleting = shadow?.outgoing.some(
		(each) =>
			each.target !== undefined &&
			each.targetUid === uid &&
			keyString(each.target) === text &&
			records.wasDeleting(deployment, target, uid, each.deploymentUid),
	);
	return (
		records.isDeleting(text, uid) ||
		records.wasDeleted(deployment, target, uid) ||
		(wasDeleting ?? false)
	);
}

/** Whether a reference was established under a uid of its target's deployment that was deleted. */
function isOfDeleted(
	records: Records,
	{ path, target, text }: TrackedReference,
	shadow: Shadow | undefined,
): boolean {
	const isIt = shadow?.outgoing.some(
		(each) =>
			each.target !== undefined &&
			each.path === path &&
			keyString(each.target) === text &&
			records.isDeploymentDeleted(target, each.deploymentUid),
	);
	return isIt ?? false;
}

/**
 * Why a change that no user made violates promise 4, or `undefined`.
 *
 * @param shadow - the shadow of the resource before the change.
 */
export function unexplainedChange(
	records: Records,
	requests: Requests,
	before: TrackedResource,
	after: TrackedResource,
	shadow: Shadow | undefined,
): string | undefined {
	for (const held of before.references) {
		const { path, target, text, rule } = held;
		const isKept = after.references.some((each) => each.text === text && each.path === path);
		const isExplained =
			rule === OnDelete.UNSET &&
			(isBeingDeleted(records, before, held, shadow) || isOfDeleted(records, held, shadow));
		if (!isKept && !isExplained) {
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
		if (!records.isInvalid(before, owner) && !records.wasInvalid(before, owner, shadow)) {
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
