import { LinkedList } from "./collections/linked-list.ts";
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

/** How many calls, and how many scheduled tasks, may be open before others wait for the end of the microtasks. */
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

/** Turns that wait, in their order. */
class TurnQueue {
	readonly #batches = new LinkedList<Batch>();
	#newest: Batch | undefined;

	get isEmpty(): boolean {
		return this.#newest === undefined;
	}

	/** Resolves when it is the turn. */
	join(batchSize: number): Promise<void> {
		let batch = this.#newest;
		if (batch === undefined || batch.size >= batchSize) {
			batch = new Batch();
			this.#newest = batch;
			this.#batches.append(batch);
		}
		batch.size += 1;
		return batch.started;
	}

	/** Starts the turns that have waited longest. Returns their number. */
	startBatch(): number {
		const batch = this.#batches.shift();
		batch?.start();
		if (this.#batches.size === 0) {
			this.#newest = undefined;
		}
		return batch?.size ?? 0;
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
 * before are done. So do calls and tasks that are requested while many others are open, because the clock says nothing
 * about work that has not run yet.
 *
 * Calls wait in one queue; tasks, messages of streams and loops in another one, which calls never hold up as long as
 * there is time: what is produced is consumed first, so that a watch does not fall behind however many callers write.
 *
 * One scheduler serves all loops of a process: the budget belongs to the event loop, not to a caller.
 *
 * Invariants:
 * - An iteration takes at most the budget and the time of `mostTurns + mostOpen` turns, regardless of how many are
 *   requested, one after the other or at the same time.
 * - While turns wait in a queue, all later ones of the queue wait behind them: they start in the order in which they were
 *   requested, and concurrent loops share the time evenly.
 * - While turns wait, the end of the microtasks or the next iteration is awaited. Each iteration starts a batch of each
 *   queue, so that neither starves the other.
 * - A turn runs in the asynchronous context in which it was requested: it is the continuation of a promise.
 */
export class EventLoopScheduler implements Scheduler {
	readonly #loop: EventLoop;
	/** How many turns should start between two readings of the clock. */
	#groupSize = 1;
	/** How many may start until it is read, of those that were granted when it was read last. */
	#left = 0;
	#granted = 0;
	/** When the clock was read last, and when first in this iteration. */
	#groupStartMs = 0;
	#roundStartMs = 0;
	/** Whether the next iteration will be noticed. */
	#isArmed = false;
	/** Whether waiting turns will be started. */
	#isBehind = false;
	/** The number of calls that have not ended, and of scheduled tasks that have not started. */
	#calls = 0;
	#tasks = 0;
	readonly #callQueue = new TurnQueue();
	readonly #queue = new TurnQueue();

	constructor(loop: EventLoop) {
		this.#loop = loop;
	}

	get isBehind(): boolean {
		return this.#isBehind;
	}

	schedule(task: () => void): void {
		this.#tasks += 1;
		void (this.#take(this.#queue, this.#tasks) ?? settled).then(() => {
			this.#tasks -= 1;
			task();
		});
	}

	scheduleAfterInput(task: () => void): void {
		this.#loop.nextIteration(task);
	}

	turn(): Promise<void> | undefined {
		return this.#take(this.#queue, 0);
	}

	/** Like `turn`, for a call. Its end has to be reported by `endCall`, whether or not its turn has come. */
	beginCall(): Promise<void> | undefined {
		this.#calls += 1;
		return this.#take(this.#callQueue, this.#calls);
	}

	/** A call has ended. */
	endCall(): void {
		this.#calls -= 1;
	}

	#take(queue: TurnQueue, open: number): Promise<void> | undefined {
		if (this.#left > 0 && queue.isEmpty) {
			this.#left -= 1;
			return undefined;
		}
		return this.#check(queue, open);
	}

	#check(queue: TurnQueue, open: number): Promise<void> | undefined {
		if (!queue.isEmpty || open > mostOpen) {
			return this.#wait(queue);
		}
		const nowMs = this.#loop.now();
		if (!this.#hasTime(nowMs)) {
			return this.#wait(queue);
		}
		this.#granted = this.#groupSize;
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
		const turns = this.#granted - this.#left;
		if (turns > 0) {
			const turnMs = (nowMs - this.#groupStartMs) / turns;
			this.#groupSize = Math.max(1, Math.min(mostTurns, Math.floor(groupMs / turnMs)));
			this.#groupStartMs = nowMs;
			this.#granted = this.#left;
		}
		return nowMs - this.#roundStartMs < budgetMs;
	}

	#beginRound(nowMs: number): void {
		this.#isArmed = true;
		this.#roundStartMs = nowMs;
		this.#groupStartMs = nowMs;
		this.#loop.nextIteration(this.#onIteration);
	}

	#wait(queue: TurnQueue): Promise<void> {
		if (!this.#isBehind) {
			this.#isBehind = true;
			this.#loop.microtasksDone(this.#onMicrotasksDone);
		}
		return queue.join(this.#groupSize);
	}

	readonly #onMicrotasksDone = (): void => {
		if (this.#hasTime(this.#loop.now())) {
			this.#startBatches();
		}
	};

	readonly #onIteration = (): void => {
		this.#isArmed = false;
		if (this.#isBehind) {
			this.#beginRound(this.#loop.now());
			this.#startBatches();
		}
	};

	#startBatches(): void {
		this.#left = 0;
		this.#granted = this.#queue.startBatch() + this.#callQueue.startBatch();
		this.#isBehind = !(this.#queue.isEmpty && this.#callQueue.isEmpty);
		if (this.#isBehind) {
			this.#loop.microtasksDone(this.#onMicrotasksDone);
		}
	}
}
