import { type Scheduler, scheduleAfterInput } from "@plinth/runtime";

/** The options of request bursts. */
export interface RequestBurstsOptions {
	readonly scheduler: Scheduler;
	/** Whether a queued change can be mapped without waiting for anything. */
	readonly isMapping: () => boolean;
	/** Releases a key to be reconciled. */
	readonly release: (key: string) => void;
}

/** How many iterations of the event loop a burst lasts at most. */
const longestBurst = 64;

/**
 * Merges the requests that mappers make for one managed resource in one burst, so that many changes of what
 * it depends on cause one reconcile:
 *
 * ```
 *   changes ──▶ mapping queues ──▶ requests, held by key ──▶ released when the burst is over
 * ```
 *
 * A burst begins with the first request. It is over when input has been handled, no turn waits for the event loop (it
 * may deliver another change), and no queued change can be mapped at once, or after 64 iterations of the event loop,
 * so that a stream of changes delays a reconcile but can't prevent it. Mappers that wait for something don't prolong it.
 *
 * Invariant: each key that is added is released at the end of its burst, and in one burst it is added once.
 */
export class RequestBursts {
	readonly #options: RequestBurstsOptions;
	#keys: string[] = [];
	#iterations = 0;

	constructor(options: RequestBurstsOptions) {
		this.#options = options;
	}

	/** The queue holds the key, which has to be released when the burst is over. */
	add(key: string): void {
		if (this.#keys.push(key) === 1) {
			this.#iterations = 0;
			scheduleAfterInput(this.#options.scheduler, this.#onIteration);
		}
	}

	readonly #onIteration = (): void => {
		const { scheduler, isMapping, release } = this.#options;
		this.#iterations += 1;
		if ((isMapping() || scheduler.isBehind) && this.#iterations < longestBurst) {
			scheduleAfterInput(scheduler, this.#onIteration);
			return;
		}
		const keys = this.#keys;
		this.#keys = [];
		for (const key of keys) {
			release(key);
		}
	};
}
