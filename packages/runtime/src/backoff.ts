import { type Clock, sleep } from "./clock.ts";
import type { Random } from "./random.ts";

/** How delays grow with each failure in a row. */
export interface BackoffPolicy {
	/** The delay after the first failure, in milliseconds. */
	readonly baseMs: number;
	/** The longest delay, in milliseconds, before jitter. */
	readonly maxMs: number;
}

/**
 * The delay after that many failures in a row (1 or more), in milliseconds: each twice the last.
 *
 * @param random - multiplies the delay by a random factor from 0.5 to 1.5. Without it there is no jitter.
 */
export function backoffDelayMs(
	{ baseMs, maxMs }: BackoffPolicy,
	failures: number,
	random?: Random,
): number {
	const delayMs = Math.min(maxMs, baseMs * 2 ** (failures - 1));
	return random === undefined ? delayMs : delayMs * (0.5 + random.next());
}

/** A backoff: its policy, and the runtime to wait on. */
export interface BackoffOptions extends BackoffPolicy {
	readonly clock: Clock;
	/** For jitter, as in `backoffDelayMs`. */
	readonly random?: Random;
}

/**
 * Exponential backoff: delays between the attempts of one operation, which double with each failure up
 * to a maximum.
 */
export class Backoff {
	readonly #options: BackoffOptions;
	#failures = 0;

	constructor(options: BackoffOptions) {
		this.#options = options;
	}

	/** Counts a failure and returns the delay before the next attempt, in milliseconds. */
	nextDelayMs(): number {
		this.#failures += 1;
		return backoffDelayMs(this.#options, this.#failures, this.#options.random);
	}

	/**
	 * Counts a failure and waits until the next attempt is due.
	 *
	 * @throws the signal's reason when it aborts.
	 */
	wait(signal?: AbortSignal): Promise<void> {
		return sleep(this.#options.clock, this.nextDelayMs(), signal);
	}

	/** An attempt has succeeded: the next failure is the first again. */
	reset(): void {
		this.#failures = 0;
	}
}
