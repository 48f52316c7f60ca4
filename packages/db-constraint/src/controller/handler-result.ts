import { isPlanted } from "../fault-points.ts";
import type { ConstraintLimits } from "../node/limits.ts";

/** The result of a handler's pass over one key. */
export interface HandlerResult {
	/** The delay until the next pass, in milliseconds. Absent: the next change of the shadow triggers it. */
	readonly requeueAfterMs?: number;
}

/** Nothing is left but to wait for changes. */
export const done: HandlerResult = {};

/** The result with the shortest delay. */
export function soonest(...all: readonly HandlerResult[]): HandlerResult {
	const times = all.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
	return times.length === 0 ? done : { requeueAfterMs: Math.min(...times) };
}

/**
 * The result of a pass whose commit met a conflict: a concurrent write of the resource need not change the shadow, so that
 * nothing else would trigger the next pass.
 */
export function afterConflict({ maxRetryDelayMs }: ConstraintLimits): HandlerResult {
	return isPlanted("wait for a change after a conflict")
		? done
		: { requeueAfterMs: maxRetryDelayMs };
}
