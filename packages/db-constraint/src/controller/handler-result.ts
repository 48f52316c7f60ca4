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
