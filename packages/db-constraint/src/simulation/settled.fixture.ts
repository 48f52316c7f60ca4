import { Condition_State, type OwnerReference, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion, Namespace } from "@plinth/resource";
import {
	ownersKnown,
	referencesResolved,
	statusKey,
	targetsKept,
} from "../controller/reported-status.ts";
import { isDeletionIrrevocable } from "../protocol/holder-decision.ts";
import { compareApiVersions } from "../schema/api-versions.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import type { Records } from "./records.fixture.ts";
import { describeShadow } from "./trace-format.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

/** A description of state that should have settled, or `undefined`: promise 3. */
export function unsettled(records: Records): string | undefined {
	const unsettledDeployment = deploymentProblem(records);
	if (unsettledDeployment !== undefined) {
		return unsettledDeployment;
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
			: (ownersProblem(records, tracked) ?? reportProblem(records, tracked));
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

/** Whether a deployment is still switching its schema, or has become a successor and is not established. */
function deploymentProblem(records: Records): string | undefined {
	for (const [{ info, schema: wanted }, { schema, complete }] of records.activeSchemas) {
		if (schema !== wanted || !complete) {
			return `${info.name} has the schema "${schema.name}"${complete ? "" : ", incomplete,"} and should have "${wanted.name}"`;
		}
	}
	for (const [{ info }, { state }] of records.identities) {
		if (state !== "settled" && state !== "gone") {
			return `${info.name} was ${state}, and has not established its references again`;
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
	if (isDeleting && !mayWait(records, tracked, new Set())) {
		return "is still DELETING, and nothing holds it";
	}
	const left = isDeleting ? leftBy(records, tracked) : undefined;
	return left && `is DELETING, and ${left.text} was not deleted with it`;
}

/** A resource that a deletion should have taken along: one that waits must not keep it from others. */
function leftBy(records: Records, { text, uid }: TrackedResource): TrackedResource | undefined {
	const uses = [...records.referencing(text)].filter(([, held]) => held.uid === uid);
	const blocking = new Set(
		uses.flatMap(([referrer, { rule }]) => (rule === OnDelete.BLOCK ? referrer : [])),
	);
	const left = uses.find(
		([referrer, { rule }]) =>
			rule === OnDelete.CASCADE &&
			!blocking.has(referrer) &&
			!isMarkedForDeletion(referrer.resource) &&
			!isBlocked(records, referrer),
	);
	return left?.[0];
}

/**
 * Whether a BLOCK reference may have come after the deletion of the target started: by a schema switch that has changed the
 * rule, or because its deployment has lost a uid, under which nothing held the target, and has established it again.
 */
function blocksLate(
	records: Records,
	referrer: TrackedResource,
	{ rule }: TrackedReference,
): boolean {
	const { hasChanged = false } = records.activeSchemas.get(referrer.deployment) ?? {};
	const isAgain = records.identityOf(referrer.deployment).former.size > 0;
	return (
		(hasChanged || isAgain) && rule === OnDelete.BLOCK && !records.isInMarkedNamespace(referrer)
	);
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
		return isBlocked(records, tracked) || isKept(records, tracked, invalid)
			? undefined
			: `still has the owner ${invalid.name}, which is lost`;
	}
	const old = tracked.resource.ownerReferences.find((each) => isOutdated(records, each));
	return old && `names its owner ${old.name} by the version ${old.type?.groupVersion}`;
}

/** What is wrong with the references that have no target, or with the reports on them. */
function reportProblem(
	records: Records,
	{ resource, references }: TrackedResource,
): string | undefined {
	for (const { path, target, rule, uid, isSuspended } of references) {
		if (uid === unresolved && !isReported(resource, referencesResolved)) {
			return `has ${path} without a target, and does not report it`;
		}
		if (!isSuspended) {
			continue;
		}
		const storage = records.storageOf(target);
		if (storage === undefined || records.identities.get(storage)?.state !== "gone") {
			return `has ${path}, which was not established again`;
		}
		if (rule === OnDelete.UNSET) {
			return `has ${path} to a deleted deployment, and the rule UNSET`;
		}
		if (!isReported(resource, targetsKept)) {
			return `has ${path} to a deleted deployment, and does not report it`;
		}
	}
	return undefined;
}

/**
 * Whether a lost owner is kept, which is reported: because its deployment was deleted before it was asked about the owner,
 * or because the deployment lost it in a restore after it had responded that the owner is valid.
 */
function isKept(
	records: Records,
	{ text, resource, deployment }: TrackedResource,
	{ uid, type, region }: OwnerReference,
): boolean {
	const storage = records.storageOf({
		group: type?.group ?? "",
		region: region || deployment.info.region,
	});
	const identity = storage && records.identities.get(storage);
	const owner = records.shadows.get(text)?.metaOwners.find(({ ownerUid }) => ownerUid === uid);
	return identity?.state === "gone"
		? !owner?.deploymentUid && isReported(resource, ownersKnown)
		: owner?.valid === true &&
				(identity?.lastStates.has(owner.deploymentUid) ?? false) &&
				isReported(resource, ownersKnown);
}

/** Whether the status of a resource has a condition that is false. */
function isReported({ status }: Resource, condition: string): boolean {
	return (
		status[statusKey]?.conditions.some(
			({ type, state }) => type === condition && state === Condition_State.FALSE,
		) ?? false
	);
}

/** Whether the deployment of an owner has announced a later version than the reference names. */
function isOutdated(records: Records, { uid, type }: OwnerReference): boolean {
	const { deployment } = records.byUid.get(uid) ?? {};
	const announced = records.announced.get(deployment?.info.uid ?? "") ?? "";
	return compareApiVersions(announced, type?.groupVersion ?? "") > 0;
}
