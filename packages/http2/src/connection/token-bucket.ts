import type { Clock } from "@plinth/runtime";
import type { RateLimit } from "../http2.ts";

/** Tolerates `burst` events, and then `perSecond` on average. The clock is only read when the burst is used up. */
export class TokenBucket {
	readonly #limit: RateLimit;
	readonly #clock: Clock;
	#tokens: number;
	#refilledMs: number;

	constructor(limit: RateLimit, clock: Clock) {
		this.#limit = limit;
		this.#clock = clock;
		this.#tokens = limit.burst;
		this.#refilledMs = clock.monotonic();
	}

	/** Returns false if there are too many. */
	take(): boolean {
		if (this.#tokens < 1) {
			this.#refill();
		}
		if (this.#tokens < 1) {
			return false;
		}
		this.#tokens--;
		return true;
	}

	/** Tolerates more events, because something useful was done for the peer or by it. */
	refund(count = 1): void {
		this.#tokens = Math.min(this.#limit.burst, this.#tokens + count);
	}

	#refill(): void {
		const nowMs = this.#clock.monotonic();
		const gained = ((nowMs - this.#refilledMs) * this.#limit.perSecond) / 1000;
		this.#tokens = Math.min(this.#limit.burst, this.#tokens + gained);
		this.#refilledMs = nowMs;
	}
}
