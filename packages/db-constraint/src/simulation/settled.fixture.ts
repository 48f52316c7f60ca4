import type { OwnerReference } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion, Namespace } from "@plinth/resource";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { compareApiVersions } from "../schema/api-versions.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import {
	type Records,
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./records.fixture.ts";
import { describeShadow } from "./trace-format.fixture.ts";

/** A description of state that should have settled, or `undefined`: promise 3. */
export function unsettled(records: Records): string | undefined {
	for (const [{ info, schema: wanted }, { schema, complete }] of records.activeSchemas) {
		if (schema !== wanted || !complete) {
			return `${info.name} has the schema "${schema.name}"${complete ? "" : ", incomplete,"} and should have "${wanted.name}"`;
		}
	}
	for (const [text, shadow] of records.shadows) {
		if (shadow.resource?.kind === Namespace.type.kind) {
			continue;
		}
		const problem = problemOf(records, text, shadow);
		if (problem !== undefined) {
			return `${text} ${problem}: ${describeShadow(shadow)}`;
		}
	}
	for (const tracked of records.resources.values()) {
		const problem = isMarkedForDeletion(tracked.resource)
			? !records.isDeleting(tracked.text, tracked.uid) && "is marked, and not DELETING"
			: ownersProblem(records, tracked);
		if (problem) {
			return `${tracked.text} ${problem}`;
		}
		if (records.isInMarkedNamespace(tracked) && !mayStay(records, tracked, new Set())) {
			return `${tracked.text} still exists, though its namespace is being deleted`;
		}
	}
	for (const unit of records.markedNamespaces) {
		const isUsed = [...records.resources.values()].some((each) => isIn(each, unit));
		if (!isUsed) {
			return `the namespace ${unit} is empty, and still exists`;
		}
	}
	return undefined;
}

function isIn({ deployment, resource }: TrackedResource, unit: string): boolean {
	return `${deployment.info.name}/${resource.id?.tenancy?.namespace}` === unit;
}

function problemOf(records: Records, text: string, shadow: Shadow): string | undefined {
	const tracked = records.byUid.get(shadow.uid);
	if (tracked?.text !== text) {
		return "does not exist, and has a shadow";
	}
	if (shadow.lifecycle === Lifecycle.CHECKING) {
		return "is still CHECKING";
	}
	const isDeleting = shadow.lifecycle === Lifecycle.DELETING;
	// A deletion keeps querying its sources, tentative or not, and tasks are removed with the resource.
	if (!isDeleting && shadow.sources.some(({ tentative }) => tentative)) {
		return "has a tentative source";
	}
	if (!isDeleting && shadow.tasks.some(({ task }) => task.case !== "resolve")) {
		return "has tasks";
	}
	if (!isDeleting && tracked.references.some((held) => isMissed(records, held))) {
		return "has an unresolved reference whose target exists";
	}
	return isDeleting && !mayWait(records, tracked, new Set())
		? "is still DELETING, and nothing holds it"
		: undefined;
}

/** Whether a schema switch may have changed the rule to BLOCK after the deletion of the target started. */
function blocksLate(
	records: Records,
	referrer: TrackedResource,
	{ rule }: TrackedReference,
): boolean {
	const { hasChanged = false } = records.activeSchemas.get(referrer.deployment) ?? {};
	return hasChanged && rule === OnDelete.BLOCK && !records.isInMarkedNamespace(referrer);
}

/** Whether a reference that had no target when its schema became active has one now. */
function isMissed(records: Records, { text, uid }: TrackedReference): boolean {
	const target = records.resources.get(text);
	return (
		uid === unresolved &&
		target !== undefined &&
		!isMarkedForDeletion(target.resource) &&
		!records.isInMarkedNamespace(target) &&
		!records.isDeleting(text, target.uid)
	);
}

/** Whether a resource that is being deleted has a reason to wait. */
function mayWait(records: Records, tracked: TrackedResource, seen: Set<string>): boolean {
	if (seen.has(tracked.text)) {
		return false;
	}
	seen.add(tracked.text);
	if (finalizersOf(tracked.resource).some((finalizer) => finalizer !== referencesFinalizer)) {
		return true;
	}
	for (const [referrer, held] of records.referencing(tracked.text)) {
		if (held.uid === tracked.uid && held.rule !== OnDelete.UNSET) {
			if (mayStay(records, referrer, seen) || blocksLate(records, referrer, held)) {
				return true;
			}
		}
	}
	for (const ownee of records.resources.values()) {
		const owns = ownee.resource.ownerReferences.some(({ uid }) => uid === tracked.uid);
		if (owns && !isDeletionIrrevocable(ownee.resource) && mayStay(records, ownee, seen)) {
			return true;
		}
	}
	return false;
}

/** Whether a resource that should be deleted with another one has a reason to stay. */
function mayStay(records: Records, tracked: TrackedResource, seen: Set<string>): boolean {
	return isMarkedForDeletion(tracked.resource)
		? mayWait(records, tracked, seen)
		: isBlocked(records, tracked);
}

function isBlocked(records: Records, { text, uid }: TrackedResource): boolean {
	for (const [referrer, held] of records.referencing(text)) {
		const isYielding = records.isInMarkedNamespace(referrer);
		if (held.uid === uid && held.rule === OnDelete.BLOCK && !isYielding) {
			return true;
		}
	}
	return false;
}

function ownersProblem(records: Records, tracked: TrackedResource): string | undefined {
	const invalid = tracked.resource.ownerReferences.find((each) => records.isInvalid(tracked, each));
	if (invalid !== undefined) {
		return isBlocked(records, tracked)
			? undefined
			: `still has the owner ${invalid.name}, which is lost`;
	}
	const old = tracked.resource.ownerReferences.find((each) => isOutdated(records, each));
	return old && `names its owner ${old.name} by the version ${old.type?.groupVersion}`;
}

/** Whether the deployment of an owner has announced a later version than the reference names. */
function isOutdated(records: Records, { uid, type }: OwnerReference): boolean {
	const { deployment } = records.byUid.get(uid) ?? {};
	const announced = records.announced.get(deployment?.info.name ?? "") ?? "";
	return compareApiVersions(announced, type?.groupVersion ?? "") > 0;
}
