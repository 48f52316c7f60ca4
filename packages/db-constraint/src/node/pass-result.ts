/** What came of a handler's pass over one key. */
export interface PassResult {
	/** When to look again, in milliseconds; absent where the next change of the shadow suffices. */
	readonly requeueAfterMs?: number;
}

/** Nothing is left to wait for but changes. */
export const done: PassResult = {};

/** The sooner of two passes. */
export function soonest(...all: readonly PassResult[]): PassResult {
	const times = all.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
	return times.length === 0 ? done : { requeueAfterMs: Math.min(...times) };
}
