import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type Condition,
	Condition_State,
	ConditionSchema,
	type Resource,
	StatusSchema,
} from "@plinth/proto";
import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import { displayKey } from "./resource-key.ts";

/** Under which key the constraints report on a resource. */
export const statusKey = "references";

/** A condition that holds, or that does not. */
export function condition(type: string, holds: boolean, message: string): Condition {
	return create(ConditionSchema, {
		type,
		state: holds ? Condition_State.TRUE : Condition_State.FALSE,
		reason: holds ? type : `Not${type}`,
		message,
	});
}

/** The condition that says whether all references of a resource have targets. */
export const referencesResolved = "ReferencesResolved";

/** The condition that says whether the deployments of all targets are there. */
export const targetsKept = "TargetsKept";

/**
 * The resource as it is written, with conditions put to true for which its references give no reason any more.
 *
 * @param holds - whether a condition holds now, as far as that is known.
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
		(upheld, { type }) => withCondition(upheld, condition(type, true, ""), clock) ?? upheld,
		resource,
	);
}

/** How many references a report names. */
const named = 10;

/** References for people, in a length that a status has room for. */
export function displayReferences(references: readonly OutgoingReference[]): string {
	const names = references
		.slice(0, named)
		.map(({ path, target }) => `${path}: ${target && displayKey(target)}`);
	const more = references.length > named ? [`and ${references.length - named} more`] : [];
	return [...names, ...more].join(", ");
}

/**
 * The resource with a condition in the status that the constraints report, in place of the one of that
 * type; `undefined` where it says that already.
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
