import type { Backoff } from "@plinth/runtime";

/** The waits before attempts, all of which can be ended at once. */
export class Attempts {
	readonly #waiting = new Set<AbortController>();

	/**
	 * Counts a failure and waits until the next attempt is due, or `retryNow` is called.
	 *
	 * @throws the signal's reason when it aborts.
	 */
	async wait(backoff: Backoff, signal: AbortSignal): Promise<void> {
		const now = new AbortController();
		this.#waiting.add(now);
		try {
			await backoff.wait(AbortSignal.any([signal, now.signal]));
		} catch {
			signal.throwIfAborted();
			backoff.reset();
		} finally {
			this.#waiting.delete(now);
		}
	}

	/** Ends all waits. Further failures are followed by the shortest ones again. */
	retryNow(): void {
		for (const each of this.#waiting) {
			each.abort();
		}
	}
}
