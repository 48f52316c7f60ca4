/** What a reconciler returns to be called again for the same resource. */
export interface Requeue {
	/** When at the latest, in milliseconds from the end of the reconcile. */
	readonly afterMs: number;
}

/**
 * Reconcile again in `delayMs` milliseconds at the latest; sooner where something changes,
 * and then what that reconcile returns holds instead. As any return, it ends the backoff of earlier
 * failures.
 *
 * @throws RangeError where the delay is negative or not finite.
 */
export function requeueAfter(delayMs: number): Requeue {
	if (!Number.isFinite(delayMs) || delayMs < 0) {
		throw new RangeError(
			`requeueAfter needs a number of milliseconds of 0 or more, got ${delayMs}`,
		);
	}
	return { afterMs: delayMs };
}

/** Reconcile again at once, after what waits already. */
export const requeueNow: Requeue = requeueAfter(0);
