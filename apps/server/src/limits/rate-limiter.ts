import type { Clock } from "@plinth/runtime";

/** What a rate limiter grants to each key. */
export interface Rate {
	readonly perSecond: number;
	/** What may be taken at once after a quiet time. */
	readonly burst: number;
}

interface Bucket {
	/** What can be taken now, as of `atMs`. */
	tokens: number;
	atMs: number;
}

/**
 * A token bucket per key. A bucket that is full again is forgotten: there are never more than keys that
 * took something within the time it takes to fill one.
 */
export class RateLimiter {
	readonly #rate: Rate;
	readonly #clock: Clock;
	/** The one that was used last at the end. */
	readonly #buckets = new Map<string, Bucket>();

	constructor(rate: Rate, clock: Clock) {
		this.#rate = rate;
		this.#clock = clock;
	}

	/** Takes one of the key's, if there is one. */
	take(key: string): boolean {
		const nowMs = this.#clock.monotonic();
		const bucket = this.#buckets.get(key) ?? { tokens: this.#rate.burst, atMs: nowMs };
		bucket.tokens = this.#filled(bucket, nowMs);
		bucket.atMs = nowMs;
		const granted = bucket.tokens >= 1;
		if (granted) {
			bucket.tokens -= 1;
		}
		this.#buckets.delete(key);
		this.#buckets.set(key, bucket);
		this.#forgetFull(nowMs);
		return granted;
	}

	/** How many keys it knows. */
	get size(): number {
		return this.#buckets.size;
	}

	#filled({ tokens, atMs }: Bucket, nowMs: number): number {
		const { perSecond, burst } = this.#rate;
		return Math.min(burst, tokens + ((nowMs - atMs) / 1_000) * perSecond);
	}

	/** Looks at two of the oldest: with one added per call at most, all get their turn. */
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
