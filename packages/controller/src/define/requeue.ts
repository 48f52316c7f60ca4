/** Returned by a reconciler to be called again for the same resource. */
export interface Requeue {
	/** The maximum delay, in milliseconds from the end of the reconcile; the reconcile fails if `requeueAfter` refuses it. */
	readonly afterMs: number;
}

/**
 * Requests another reconcile in at most `delayMs` milliseconds. If something changes before that, the
 * reconcile runs earlier, and its return value replaces this one. Like any return, it resets the
 * backoff.
 *
 * @throws RangeError if the delay is negative or not finite.
 */
export function requeueAfter(delayMs: number): Requeue {
	if (!Number.isFinite(delayMs) || delayMs < 0) {
		throw new RangeError(
			`requeueAfter needs a number of milliseconds of 0 or more, got ${delayMs}`,
		);
	}
	return { afterMs: delayMs };
}

/** Requests another reconcile immediately, after the requests that are already queued. */
export const requeueNow: Requeue = requeueAfter(0);
