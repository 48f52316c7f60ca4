import type { Clock, Timer } from "../clock.ts";
import { systemScheduler } from "../system-scheduler.ts";

interface FakeTimer extends Timer {
	readonly dueMs: number;
	/** Breaks ties: timers due at the same instant fire in the order in which they were set. */
	readonly order: number;
	fire(): void;
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
	#wallMs: number;
	#order = 0;
	readonly #timers = new Set<FakeTimer>();
	readonly #deliver: (callback: () => void) => void;

	constructor(options: FakeClockOptions = {}) {
		this.#wallMs = options.nowMs ?? Date.UTC(2026, 0, 1);
		this.#deliver = options.deliver ?? ((callback) => callback());
	}

	/** In whole milliseconds, like the system clock. */
	now(): number {
		return Math.floor(this.#wallMs);
	}

	monotonic(): number {
		return this.#monotonicMs;
	}

	setTimer(delayMs: number, callback: () => void): Timer {
		let pending = true;
		const timer: FakeTimer = {
			dueMs: this.#monotonicMs + Math.max(0, delayMs),
			order: this.#order++,
			fire: () =>
				this.#deliver(() => {
					if (pending) {
						pending = false;
						callback();
					}
				}),
			cancel: () => {
				pending = false;
				this.#timers.delete(timer);
			},
		};
		if (timer.dueMs !== Number.POSITIVE_INFINITY) {
			this.#timers.add(timer);
		}
		return timer;
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
		const timer = this.#next();
		if (timer === undefined || timer.dueMs > untilMs) {
			return false;
		}
		this.#moveTo(timer.dueMs);
		this.#timers.delete(timer);
		timer.fire();
		return true;
	}

	/** Makes the wall clock jump, forwards or backwards; monotonic time and timers are unaffected. */
	jump(byMs: number): void {
		this.#wallMs += byMs;
	}

	/** Milliseconds until the next timer, or `undefined` if none is set. */
	nextTimerMs(): number | undefined {
		const next = this.#next();
		return next === undefined ? undefined : next.dueMs - this.#monotonicMs;
	}

	#next(): FakeTimer | undefined {
		let next: FakeTimer | undefined;
		for (const timer of this.#timers) {
			if (
				next === undefined ||
				timer.dueMs < next.dueMs ||
				(timer.dueMs === next.dueMs && timer.order < next.order)
			) {
				next = timer;
			}
		}
		return next;
	}

	#moveTo(monotonicMs: number): void {
		const byMs = monotonicMs - this.#monotonicMs;
		if (byMs > 0) {
			// Not added up: by rounding, a sum may fall short of the due time of a timer.
			this.#monotonicMs = monotonicMs;
			this.#wallMs += byMs;
		}
	}
}

/** Resolves when all promises that can settle without time or input have settled. */
async function settle(): Promise<void> {
	do {
		await new Promise((resolve) => setImmediate(resolve));
	} while (systemScheduler.isBehind);
}
