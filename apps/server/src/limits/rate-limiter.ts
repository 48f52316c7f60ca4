import type { Clock } from "@plinth/runtime";

/** The rate that a limiter grants to each key. */
export interface Rate {
	readonly perSecond: number;
	/** How many tokens may be taken at once after an idle period. */
	readonly burst: number;
}

interface Bucket {
	/** The tokens that were available at `atMs`. */
	tokens: number;
	atMs: number;
}

/**
 * A token bucket per key. A full bucket is forgotten, so that there are never more buckets than keys that were used
 * within the time to fill one.
 */
export class RateLimiter {
	readonly #rate: Rate;
	readonly #clock: Clock;
	/** The most recently used last. */
	readonly #buckets = new Map<string, Bucket>();
	/** The key that was used last. */
	#last: string | undefined;

	constructor(rate: Rate, clock: Clock) {
		this.#rate = rate;
		this.#clock = clock;
	}

	/** Takes a token of the key. Returns whether one was available. */
	take(key: string): boolean {
		const nowMs = this.#clock.monotonic();
		const bucket = this.#buckets.get(key) ?? { tokens: this.#rate.burst, atMs: nowMs };
		bucket.tokens = this.#filled(bucket, nowMs);
		bucket.atMs = nowMs;
		const granted = bucket.tokens >= 1;
		if (granted) {
			bucket.tokens -= 1;
		}
		if (key !== this.#last) {
			this.#last = key;
			this.#buckets.delete(key);
		}
		this.#buckets.set(key, bucket);
		this.#forgetFull(nowMs);
		return granted;
	}

	/** The number of known keys. */
	get size(): number {
		return this.#buckets.size;
	}

	#filled({ tokens, atMs }: Bucket, nowMs: number): number {
		const { perSecond, burst } = this.#rate;
		return Math.min(burst, tokens + ((nowMs - atMs) / 1_000) * perSecond);
	}

	/** Checks the two oldest: since each call adds at most one, all buckets are eventually checked. */
	#forgetFull(nowMs: number): void {
		let looked = 0;
		for (const [key, bucket] of this.#buckets) {
			if (looked === 2 || this.#filled(bucket, nowMs) < this.#rate.burst) {
				return;
			}
			this.#buckets.delete(key);
			looked += 1;
		}
	}
}
