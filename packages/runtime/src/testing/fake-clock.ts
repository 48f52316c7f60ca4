import type { Clock, Timer } from "../clock.ts";
import { systemScheduler } from "../system-scheduler.ts";

interface FakeTimer {
	readonly dueMs: number;
	/** Breaks ties: timers due at the same instant fire in the order in which they were set. */
	readonly order: number;
	/** Absent once it was called or the timer was canceled. */
	callback: (() => void) | undefined;
}

/** Options of a fake clock. */
export interface FakeClockOptions {
	/** The initial wall-clock time, in milliseconds since the epoch; 2026-01-01 by default. */
	readonly nowMs?: number;
	/** Runs the callback of a timer that is due; at once by default. A timer canceled before that is not called. */
	readonly deliver?: (callback: () => void) => void;
}

/**
 * A clock that moves only when a test advances it. Timers fire within `advance`, in the order of their
 * due times, each with the clock at its due time.
 */
export class FakeClock implements Clock {
	#monotonicMs = 0;
	/** The wall-clock time minus the monotonic one. */
	#offsetMs: number;
	#order = 0;
	/** The next one is the last. */
	readonly #timers: FakeTimer[] = [];
	readonly #deliver: (callback: () => void) => void;

	constructor(options: FakeClockOptions = {}) {
		this.#offsetMs = options.nowMs ?? Date.UTC(2026, 0, 1);
		this.#deliver = options.deliver ?? ((callback) => callback());
	}

	/** In whole milliseconds, like the system clock. */
	now(): number {
		return Math.floor(this.#offsetMs + this.#monotonicMs);
	}

	monotonic(): number {
		return this.#monotonicMs;
	}

	setTimer(delayMs: number, callback: () => void): Timer {
		const dueMs = this.#monotonicMs + Math.max(0, delayMs);
		const timer: FakeTimer = { dueMs, order: this.#order++, callback };
		if (dueMs !== Number.POSITIVE_INFINITY) {
			this.#timers.splice(this.#placeOf(timer), 0, timer);
		}
		return {
			cancel: () => {
				timer.callback = undefined;
				const place = this.#placeOf(timer);
				if (this.#timers[place] === timer) {
					this.#timers.splice(place, 1);
				}
			},
		};
	}

	/** Moves time forward and fires all timers that come due, including those set by other timers. */
	advance(byMs: number): void {
		const endMs = this.#monotonicMs + byMs;
		while (this.advanceToTimer(endMs)) {}
		this.#moveTo(endMs);
	}

	/** Like `advance`, but lets promises settle before each timer and after the last. */
	async advanceAsync(byMs: number): Promise<void> {
		const endMs = this.#monotonicMs + byMs;
		do {
			await settle();
		} while (this.advanceToTimer(endMs));
		this.#moveTo(endMs);
	}

	/**
	 * Moves time to the next timer and fires only that one, if it is due by `untilMs` on the monotonic
	 * clock. Returns whether it fired one.
	 */
	advanceToTimer(untilMs = Number.POSITIVE_INFINITY): boolean {
		const timer = this.#timers.at(-1);
		if (timer === undefined || timer.dueMs > untilMs) {
			return false;
		}
		this.#moveTo(timer.dueMs);
		this.#timers.pop();
		this.#deliver(() => {
			const { callback } = timer;
			timer.callback = undefined;
			callback?.();
		});
		return true;
	}

	/** Makes the wall clock jump, forwards or backwards; monotonic time and timers are unaffected. */
	jump(byMs: number): void {
		this.#offsetMs += byMs;
	}

	/** Milliseconds until the next timer, or `undefined` if none is set. */
	nextTimerMs(): number | undefined {
		const next = this.#timers.at(-1);
		return next === undefined ? undefined : next.dueMs - this.#monotonicMs;
	}

	/** The index at which a timer is, or belongs: before all that fire earlier. */
	#placeOf({ dueMs, order }: FakeTimer): number {
		let low = 0;
		let high = this.#timers.length;
		while (low < high) {
			const middle = (low + high) >>> 1;
			const other = this.#timers[middle];
			const isLater =
				other !== undefined &&
				(other.dueMs > dueMs || (other.dueMs === dueMs && other.order > order));
			if (isLater) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		return low;
	}

	#moveTo(monotonicMs: number): void {
		// Not added up: by rounding, a sum of steps may fall short of the time they lead to.
		this.#monotonicMs = Math.max(this.#monotonicMs, monotonicMs);
	}
}

/** Resolves when all promises that can settle without time or input have settled. */
async function settle(): Promise<void> {
	do {
		await new Promise((resolve) => setImmediate(resolve));
	} while (systemScheduler.isBehind);
}
