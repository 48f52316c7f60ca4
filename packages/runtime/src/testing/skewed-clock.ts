import type { Clock, Timer } from "../clock.ts";

/** How a skewed clock differs from its base clock. */
export interface Skew {
	/** How far its wall clock is ahead, in milliseconds; negative if behind. */
	readonly offsetMs?: number;
	/** How many of its milliseconds pass in one of the base clock; 1 for the same speed. */
	readonly rate?: number;
}

/** Added to timers, so that rounding never makes them early. */
const slackMs = 0.001;

/**
 * The clock of another machine: offset, faster or slower. It can be suspended, to simulate a machine
 * whose timers are late: its time goes on, and timers that come due wait until `resume`.
 */
export class SkewedClock implements Clock {
	readonly #clock: Clock;
	readonly #offsetMs: number;
	readonly #rate: number;
	/** Timers that came due while suspended; absent while it runs. */
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

	/** Holds back timers from now on. */
	suspend(): void {
		this.#late ??= new Set();
	}

	/** Fires the timers that came due meanwhile, and continues. */
	resume(): void {
		const late = this.#late ?? [];
		this.#late = undefined;
		for (const fire of late) {
			fire();
		}
	}
}
