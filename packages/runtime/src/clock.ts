/** A timer that was set. Canceling it after it has fired, or twice, does nothing. */
export interface Timer {
	cancel(): void;
}

/**
 * Time as a parameter. Deadlines, delays and expiries use `monotonic`; only values that people read
 * (timestamps, ULIDs) use `now`.
 */
export interface Clock {
	/** Wall-clock time in milliseconds since the epoch. It may jump forwards and backwards. */
	now(): number;
	/** Milliseconds since an origin of the clock's choosing. It never goes back. */
	monotonic(): number;
	/**
	 * Calls `callback` once, `delayMs` milliseconds from now on the monotonic clock. Any delay is valid:
	 * a negative one counts as 0, one beyond the limit of the platform's timers is chained, and
	 * `Infinity` never fires. A pending timer does not keep the process alive.
	 */
	setTimer(delayMs: number, callback: () => void): Timer;
}

/** The longest delay of `setTimeout`: 2³¹ - 1 ms, about 24.8 days. Longer ones overflow to 1 ms. */
const maxTimeoutMs = 2 ** 31 - 1;

class SystemTimer implements Timer {
	#handle: NodeJS.Timeout | undefined;

	constructor(delayMs: number, callback: () => void) {
		if (delayMs !== Number.POSITIVE_INFINITY) {
			this.#arm(Math.max(0, delayMs), callback);
		}
	}

	#arm(remainingMs: number, callback: () => void): void {
		const stepMs = Math.min(remainingMs, maxTimeoutMs);
		this.#handle = setTimeout(() => {
			this.#handle = undefined;
			if (stepMs < remainingMs) {
				this.#arm(remainingMs - stepMs, callback);
			} else {
				callback();
			}
		}, stepMs);
		this.#handle.unref();
	}

	cancel(): void {
		clearTimeout(this.#handle);
		this.#handle = undefined;
	}
}

/** The clock of the machine. */
export const systemClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	setTimer: (delayMs, callback) => new SystemTimer(delayMs, callback),
};

/**
 * Resolves after `delayMs` milliseconds on the given clock. If `signal` aborts first, or has already
 * aborted, it rejects with the signal's reason.
 */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal?.aborted) {
			reject(signal.reason);
			return;
		}
		const onAbort = () => {
			timer.cancel();
			reject(signal?.reason);
		};
		const timer = clock.setTimer(delayMs, () => {
			signal?.removeEventListener("abort", onAbort);
			resolve();
		});
		signal?.addEventListener("abort", onAbort, { once: true });
	});
}
