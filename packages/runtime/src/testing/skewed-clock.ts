import type { Clock, Timer } from "../clock.ts";

/** How a clock differs from another. */
export interface Skew {
	/** How much later its wall clock is, in milliseconds; negative where it is behind. */
	readonly offsetMs?: number;
	/** How many of its milliseconds pass in one of the other's; 1 where it is exact. */
	readonly rate?: number;
}

/** Timers are late by this much, so that no rounding makes them early. */
const slackMs = 0.001;

/**
 * The clock of another machine: of another time of day, faster or slower. It can be suspended, as a
 * machine is whose timers are late: then its time goes on, and what comes due waits.
 */
export class SkewedClock implements Clock {
	readonly #clock: Clock;
	readonly #offsetMs: number;
	readonly #rate: number;
	/** What came due while it was suspended; absent while it runs. */
	#late: Set<() => void> | undefined;

	constructor(clock: Clock, { offsetMs = 0, rate = 1 }: Skew) {
		if (!(rate > 0)) {
			throw new RangeError(`the rate of a clock must be more than 0, got ${rate}`);
		}
		this.#clock = clock;
		this.#offsetMs = offsetMs;
		this.#rate = rate;
	}

	now(): number {
		return this.#clock.now() + this.#offsetMs;
	}

	monotonic(): number {
		return this.#clock.monotonic() * this.#rate;
	}

	setTimer(delayMs: number, callback: () => void): Timer {
		let pending = true;
		const fire = () => {
			if (!pending) {
				return;
			}
			if (this.#late === undefined) {
				pending = false;
				callback();
			} else {
				this.#late.add(fire);
			}
		};
		const timer = this.#clock.setTimer(Math.max(0, delayMs) / this.#rate + slackMs, fire);
		return {
			cancel: () => {
				pending = false;
				this.#late?.delete(fire);
				timer.cancel();
			},
		};
	}

	/** Lets no timer fire from now on. */
	suspend(): void {
		this.#late ??= new Set();
	}

	/** Fires what came due meanwhile, and goes on as before. */
	resume(): void {
		const late = this.#late ?? [];
		this.#late = undefined;
		for (const fire of late) {
			fire();
		}
	}
}
