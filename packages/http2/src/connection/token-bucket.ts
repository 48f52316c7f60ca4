import type { Clock } from "@plinth/runtime";
import type { Budget } from "../http2.ts";

/** Tolerates `burst` events, and then `perSecond` on average. The clock is only read when the burst is used up. */
export class TokenBucket {
	readonly #budget: Budget;
	readonly #clock: Clock;
	#tokens: number;
	#refilledMs: number;

	constructor(budget: Budget, clock: Clock) {
		this.#budget = budget;
		this.#clock = clock;
		this.#tokens = budget.burst;
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

	/** Tolerates one more event, because the peer did something useful. */
	refund(): void {
		if (this.#tokens < this.#budget.burst) {
			this.#tokens++;
		}
	}

	#refill(): void {
		const nowMs = this.#clock.monotonic();
		const gained = ((nowMs - this.#refilledMs) * this.#budget.perSecond) / 1000;
		this.#tokens = Math.min(this.#budget.burst, this.#tokens + gained);
		this.#refilledMs = nowMs;
	}
}
