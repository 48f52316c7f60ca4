import { LinkedList } from "./linked-list.ts";
import type { Scheduler } from "./scheduler.ts";

/** The event loop of a process, as a parameter that tests can control. */
export interface EventLoop {
	/** Milliseconds since some origin; it never goes back. */
	now(): number;
	/** Calls back in the next iteration, after timers and input had their turn. */
	nextIteration(callback: () => void): void;
	/** Calls back when no microtask is left. */
	microtasksDone(callback: () => void): void;
}

/** The time for turns in one iteration of the event loop, in milliseconds. */
const budgetMs = 5;

/** The clock is read after turns that took about this long, in milliseconds, */
const groupMs = 1;

/** and after this many at the latest: reading it costs as much as a tenth of a short call. */
const mostTurns = 16;

/** How many pieces of work may be open before others wait for the end of the microtasks. */
const mostOpen = 32;

/** Turns that start together, later. */
class Batch {
	readonly started: Promise<void>;
	readonly start: () => void;
	size = 0;

	constructor() {
		const { promise, resolve } = Promise.withResolvers<void>();
		this.started = promise;
		this.start = resolve;
	}
}

const settled = Promise.resolve();

/**
 * Runs tasks as microtasks for some milliseconds, and those that come later in the next iterations of the event loop.
 * Microtasks run before any timer and any input, so that a loop of calls that never waits for anything else would
 * otherwise block the whole process, however short each call is.
 *
 * ```
 *   iteration                            │ iteration
 *   turn turn turn turn ─▶ budget used   │ timers, sockets ─▶ batch ─▶ its microtasks ─▶ batch ─▶ …
 *            others wait ────────────────┼──────────────────────┘                          │
 *                                        │              others wait ───────────────────────┘
 * ```
 *
 * Turns start at once while there is time. The clock is read after some of them: after as many as took a millisecond
 * last time. Once the budget is used, all others wait, and start in batches, each when the microtasks of the one
 * before are done. So do turns that are requested while much other work is open, because the clock says nothing about
 * work that has not run yet.
 *
 * One scheduler serves all loops of a process: the budget belongs to the event loop, not to a caller.
 *
 * Invariants:
 * - An iteration takes at most the budget and the time of `mostTurns + mostOpen` turns, regardless of how many are
 *   requested, one after the other or at the same time.
 * - While turns wait, all later ones wait behind them: they start in the order in which they were requested, and
 *   concurrent loops share the time evenly.
 * - While turns wait, the end of the microtasks or the next iteration is awaited.
 * - A turn runs in the asynchronous context in which it was requested: it is the continuation of a promise.
 */
export class EventLoopScheduler implements Scheduler {
	readonly #loop: EventLoop;
	/** Turns until the clock is read, and their number when it was read last. */
	#left = 0;
	#groupSize = 1;
	/** When the clock was read last, and when first in this iteration. */
	#groupStartMs = 0;
	#roundStartMs = 0;
	/** Whether the next iteration will be noticed. */
	#isArmed = false;
	/** The number of calls that have begun, and of scheduled tasks that have not. */
	#open = 0;
	readonly #waiting = new LinkedList<Batch>();
	/** The newest of the waiting batches. */
	#newest: Batch | undefined;

	constructor(loop: EventLoop) {
		this.#loop = loop;
	}

	/** Whether turns wait. */
	get isBehind(): boolean {
		return this.#newest !== undefined;
	}

	schedule(task: () => void): void {
		void (this.begin() ?? settled).then(() => {
			this.end();
			task();
		});
	}

	scheduleAfterInput(task: () => void): void {
		this.#loop.nextIteration(task);
	}

	turn(): Promise<void> | undefined {
		if (this.#left > 0) {
			this.#left -= 1;
			return undefined;
		}
		return this.#check();
	}

	/** Like `turn`, for work whose end is reported by `end`, whether or not it has started. */
	begin(): Promise<void> | undefined {
		this.#open += 1;
		return this.turn();
	}

	/** Work that has begun is done. */
	end(): void {
		this.#open -= 1;
	}

	#check(): Promise<void> | undefined {
		if (this.#newest !== undefined || this.#open > mostOpen) {
			return this.#wait();
		}
		const nowMs = this.#loop.now();
		if (!this.#hasTime(nowMs)) {
			return this.#wait();
		}
		this.#groupStartMs = nowMs;
		this.#left = this.#groupSize - 1;
		return undefined;
	}

	/** Whether the budget of this iteration is not used yet. */
	#hasTime(nowMs: number): boolean {
		if (!this.#isArmed) {
			// How long the last turns took is not known: the event loop has run in between.
			this.#beginRound(nowMs);
			return true;
		}
		const turnMs = (nowMs - this.#groupStartMs) / this.#groupSize;
		this.#groupSize = Math.max(1, Math.min(mostTurns, Math.floor(groupMs / turnMs)));
		return nowMs - this.#roundStartMs < budgetMs;
	}

	#wait(): Promise<void> {
		let batch = this.#newest;
		if (batch === undefined) {
			this.#loop.microtasksDone(this.#onMicrotasksDone);
		}
		if (batch === undefined || batch.size >= this.#groupSize) {
			batch = new Batch();
			this.#newest = batch;
			this.#waiting.append(batch);
		}
		batch.size += 1;
		return batch.started;
	}

	readonly #onMicrotasksDone = (): void => {
		const nowMs = this.#loop.now();
		if (this.#hasTime(nowMs)) {
			this.#startBatch(nowMs);
		}
	};

	#beginRound(nowMs: number): void {
		this.#isArmed = true;
		this.#roundStartMs = nowMs;
		this.#loop.nextIteration(this.#onIteration);
	}

	readonly #onIteration = (): void => {
		this.#isArmed = false;
		if (this.#newest !== undefined) {
			const nowMs = this.#loop.now();
			this.#beginRound(nowMs);
			this.#startBatch(nowMs);
		}
	};

	/** Starts the turns that have waited longest. */
	#startBatch(nowMs: number): void {
		this.#groupStartMs = nowMs;
		this.#waiting.shift()?.start();
		if (this.#waiting.size > 0) {
			this.#loop.microtasksDone(this.#onMicrotasksDone);
		} else {
			this.#newest = undefined;
		}
	}
}
