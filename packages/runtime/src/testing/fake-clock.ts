import type { Clock, Timer } from "../clock.ts";

interface FakeTimer extends Timer {
	readonly dueMs: number;
	/** Breaks ties: timers of the same instant fire in the order in which they were set. */
	readonly order: number;
	readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to move. Timers fire within `advance`, in the order
 * of their due times, each with the clock standing at its due time.
 */
export class FakeClock implements Clock {
	#monotonicMs = 0;
	#wallMs: number;
	#order = 0;
	readonly #timers = new Set<FakeTimer>();

	constructor(options: { readonly nowMs?: number } = {}) {
		this.#wallMs = options.nowMs ?? Date.UTC(2026, 0, 1);
	}

	now(): number {
		return this.#wallMs;
	}

	monotonic(): number {
		return this.#monotonicMs;
	}

	setTimer(delayMs: number, callback: () => void): Timer {
		const timer: FakeTimer = {
			dueMs: this.#monotonicMs + Math.max(0, delayMs),
			order: this.#order++,
			callback,
			cancel: () => {
				this.#timers.delete(timer);
			},
		};
		this.#timers.add(timer);
		return timer;
	}

	/** Moves time forward, firing what comes due on the way, timers set meanwhile included. */
	advance(byMs: number): void {
		const endMs = this.#monotonicMs + byMs;
		for (
			let timer = this.#next();
			timer !== undefined && timer.dueMs <= endMs;
			timer = this.#next()
		) {
			this.#moveTo(timer.dueMs);
			this.#timers.delete(timer);
			timer.callback();
		}
		this.#moveTo(endMs);
	}

	/** As `advance`, but lets promises settle before each timer and after the last. */
	async advanceAsync(byMs: number): Promise<void> {
		const endMs = this.#monotonicMs + byMs;
		await settle();
		for (
			let timer = this.#next();
			timer !== undefined && timer.dueMs <= endMs;
			timer = this.#next()
		) {
			this.#moveTo(timer.dueMs);
			this.#timers.delete(timer);
			timer.callback();
			await settle();
		}
		this.#moveTo(endMs);
	}

	/** Makes the wall clock jump, back too; monotonic time and timers do not notice. */
	jump(byMs: number): void {
		this.#wallMs += byMs;
	}

	/** Milliseconds until the next timer, or `undefined` where none is set. */
	nextTimerMs(): number | undefined {
		const next = this.#next();
		return next === undefined ? undefined : next.dueMs - this.#monotonicMs;
	}

	#next(): FakeTimer | undefined {
		let next: FakeTimer | undefined;
		for (const timer of this.#timers) {
			if (timer.dueMs === Number.POSITIVE_INFINITY) {
				continue;
			}
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
			this.#monotonicMs += byMs;
			this.#wallMs += byMs;
		}
	}
}

/** Resolves when all promises that can settle without time or input have settled. */
function settle(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}
