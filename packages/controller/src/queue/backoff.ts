/** How delays grow with each failure in a row. */
export interface Backoff {
	/** The delay after the first failure, in milliseconds. */
	readonly baseMs: number;
	/** What no delay exceeds, in milliseconds. */
	readonly maxMs: number;
}

/** The delay after that many failures in a row (1 or more), in milliseconds: each twice the last. */
export function backoffMs(backoff: Backoff, failures: number): number {
	return Math.min(backoff.maxMs, backoff.baseMs * 2 ** (failures - 1));
}
