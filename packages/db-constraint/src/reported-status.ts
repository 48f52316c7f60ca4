import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type Condition,
	Condition_State,
	ConditionSchema,
	type Resource,
	StatusSchema,
} from "@plinth/proto";
import type { Clock } from "@plinth/runtime";

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
