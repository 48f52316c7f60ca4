import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type Condition,
	Condition_State,
	ConditionSchema,
	type Resource,
	StatusSchema,
} from "@plinth/proto";
import type {
	MetaOwner,
	OutgoingReference,
	Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import { ownerPlace, type TargetPlace, targetPlace } from "../deployments/target-place.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { displayKey } from "../shadow/resource-key.ts";

/** The key of the status that the constraints report. */
export const statusKey = "references";

/** A condition that is true or false. */
export function condition(type: string, holds: boolean, message: string): Condition {
	return create(ConditionSchema, {
		type,
		state: holds ? Condition_State.TRUE : Condition_State.FALSE,
		reason: holds ? type : `Not${type}`,
		message,
	});
}

/** The type of the condition: all references of a resource have targets. */
export const referencesResolved = "ReferencesResolved";

/** The type of the condition: the deployments of all targets exist. */
export const targetsKept = "TargetsKept";

/** The type of the condition: it is known of all owners whether they are valid. */
export const ownersKnown = "OwnersKnown";

/**
 * The written resource, with its false conditions set to true if they hold now.
 *
 * @param holds - whether a condition holds now, by type.
 */
export function withEndedReports(
	resource: Resource,
	holds: Readonly<Record<string, boolean>>,
	clock: Clock,
): Resource {
	const failed = resource.status[statusKey]?.conditions.filter(
		({ type, state }) => state === Condition_State.FALSE && holds[type],
	);
	return (failed ?? []).reduce(
		(next, { type }) => withCondition(next, condition(type, true, ""), clock) ?? next,
		resource,
	);
}

/** The maximum number of references that a report names. */
const named = 10;

/** The references for a message of bounded length. */
export function displayReferences(references: readonly OutgoingReference[]): string {
	const names = references
		.slice(0, named)
		.map(({ path, target }) => `${path}: ${target && displayKey(target)}`);
	const more = references.length > named ? [`and ${references.length - named} more`] : [];
	return [...names, ...more].join(", ");
}

/** Whether a reference has a target, or need not have one, because an operator keeps it without. */
export function isResolved({ targetUid, missing }: OutgoingReference): boolean {
	return targetUid !== "" || missing?.isKept === true;
}

/** The resource with a report on its references without a target; `undefined` if its status already has that report. */
export function withMissingReport(
	context: Pick<ConstraintContext, "descriptor" | "environment" | "runtime">,
	resource: Resource,
	shadow: Shadow | undefined,
): Resource | undefined {
	const missing = shadow?.outgoing.filter((each) => !isResolved(each)) ?? [];
	const reports = resource.status[statusKey]?.conditions.some(
		({ type }) => type === referencesResolved,
	);
	if (missing.length === 0 && !reports) {
		return undefined;
	}
	const message = missing.length > 0 ? missingMessage(context, missing) : "";
	const next = condition(referencesResolved, missing.length === 0, message);
	return withCondition(resource, next, context.runtime.clock);
}

/** Names the references, and for those whose target was lost the way to give them up. */
function missingMessage(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	missing: readonly OutgoingReference[],
): string {
	const report = `missing: ${displayReferences(missing)}`;
	const lost = missing.filter((each) => each.missing !== undefined && each.missing.uid !== "");
	const places = lost.map((each) => targetPlace(context, each));
	return lost.length === 0 ? report : `${report}; ${adviceFor(context, places)}`;
}

/** Names the owners of a resource that were lost in a restore, and the way to give them up. */
export function lostOwnersMessage(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	lost: readonly MetaOwner[],
): string {
	const names = lost.slice(0, named).map(({ owner }) => owner && displayKey(owner));
	const more = lost.length > named ? [`and ${lost.length - named} more`] : [];
	const places = lost.map((each) => ownerPlace(context, each));
	return `lost in a restore: ${[...names, ...more].join(", ")}; ${adviceFor(context, places)}`;
}

function adviceFor(
	{ environment }: Pick<ConstraintContext, "environment">,
	places: readonly TargetPlace[],
): string {
	const names = places.map(({ uid, service }) => environment.byUid(uid)?.name || service);
	const commands = [...new Set(names)].map((name) => `plinth deployments settle ${name}`);
	return `references stay until their targets are back, or operators settle them: ${commands.join(", ")}`;
}

/**
 * The resource with a condition in the status of the constraints, in place of the one of the same type.
 * `undefined` if it already has that condition.
 */
export function withCondition(
	resource: Resource,
	next: Condition,
	clock: Clock,
): Resource | undefined {
	const before = resource.status[statusKey];
	const old = before?.conditions.find(({ type }) => type === next.type);
	if (old?.state === next.state && old.message === next.message) {
		return undefined;
	}
	const others = before?.conditions.filter(({ type }) => type !== next.type) ?? [];
	const status = create(StatusSchema, {
		observedGeneration: resource.generation,
		conditions: [...others, next],
		updatedAt: timestampFromMs(clock.now()),
	});
	return { ...resource, status: { ...resource.status, [statusKey]: status } };
}
