/** The waits before repeated attempts: each twice as long as the last one, up to a maximum. */
export class RetryDelays {
	readonly #random: () => number;
	#attempts = 0;

	/** @param random - returns a number from 0 to 1. */
	constructor(random: () => number) {
		this.#random = random;
	}

	/** The next wait in milliseconds: at random, from half of it to all, so that clients do not return all at once. */
	next(): number {
		const most = Math.min(longestMs, shortestMs * 2 ** this.#attempts);
		this.#attempts += 1;
		return most * (0.5 + 0.5 * this.#random());
	}

	/** An attempt has succeeded. */
	reset(): void {
		this.#attempts = 0;
	}
}

const shortestMs = 500;
const longestMs = 30_000;
