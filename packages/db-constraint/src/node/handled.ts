/** What came of a handler's pass over one key. */
export interface Handled {
	/** When to look again, in milliseconds; absent where the next change of the shadow suffices. */
	readonly againAfterMs?: number;
}

/** Nothing is left to wait for but changes. */
export const done: Handled = {};

/** The sooner of two passes. */
export function soonest(...all: readonly Handled[]): Handled {
	const times = all.flatMap(({ againAfterMs }) => againAfterMs ?? []);
	return times.length === 0 ? done : { againAfterMs: Math.min(...times) };
}
