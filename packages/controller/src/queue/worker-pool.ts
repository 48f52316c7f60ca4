import type { BackoffPolicy, Runtime } from "@plinth/runtime";
import { LimitSweep } from "./limit-sweep.ts";
import { type KeyState, MergingQueue, type QueueState } from "./merging-queue.ts";
import { Pump } from "./pump.ts";
import type { Priority, QueueEntry } from "./queue-entry.ts";
import { Task, type TaskStage } from "./task.ts";

/** The outcome of work that did not fail. */
export type Outcome =
	| { readonly kind: "done" }
	/** The key is due again, at the latest in `delayMs` milliseconds. */
	| { readonly kind: "again"; readonly delayMs: number };

/** Details of failed work, for the log. */
export interface Failure {
	readonly key: string;
	readonly error: unknown;
	/** Consecutive failures of the key, including this one. */
	readonly failures: number;
	/** In how many milliseconds the key is due again. */
	readonly delayMs: number;
}

/** The options of a worker pool. */
export interface WorkerPoolOptions<Item> {
	readonly runtime: Pick<Runtime, "clock" | "scheduler"> & Partial<Pick<Runtime, "random">>;
	readonly backoff: BackoffPolicy;
	/** How many keys are processed concurrently. */
	readonly concurrency: number;
	/** After how many milliseconds work is reported as still running. */
	readonly reportAfterMs: number;
	/** The time limit of the work on one item, in milliseconds. */
	readonly timeLimitMs: number;
	readonly merge?: (earlier: Item, later: Item) => Item;
	/** Processes one item. An error is a failure of this item only. */
	readonly work: (item: Item, task: Task, priority: Priority) => Outcome | Promise<Outcome>;
	/** Whether the key must be held until it is released. Called each time the key is taken. */
	readonly mustWait?: (key: string) => boolean;
	/** The work on the key has failed. What this throws is ignored. */
	readonly onFailure: (failure: Failure) => void;
	/** The work on the key has exceeded `reportAfterMs` and is still running. */
	readonly onStillRunning: (work: RunningWork) => void;
	/** The work on the key has exceeded its time limit. */
	readonly onOverdue: (key: string) => void;
}

/** Work that has been running for longer than expected. */
export interface RunningWork {
	readonly key: string;
	/** For how long it has been running, in milliseconds. */
	readonly runningMs: number;
}

/** The state of a key, and of the work on it. */
export interface PooledKey extends KeyState {
	/** If it is being processed: since how many milliseconds. */
	readonly runningMs: number | undefined;
	/** Whether that has exceeded its time limit. */
	readonly isOverdue: boolean;
}

/** How many overdue tasks free their slot for another key. */
const maxOverdue = 100;

/** Work was aborted because it exceeded its time limit. */
export class TimeLimitError extends Error {
	override readonly name = "TimeLimitError";

	constructor(key: string, limitMs: number, options?: ErrorOptions) {
		super(`${key} exceeded its time limit of ${limitMs} ms and was aborted`, options);
	}
}

/**
 * Processes the items of a merging queue, up to `concurrency` keys concurrently.
 *
 * Work that exceeds `reportAfterMs` is reported. Work that exceeds `timeLimitMs` is aborted: its signal
 * aborts, and it counts as failed with a `TimeLimitError` once it has settled, whatever it returns.
 *
 * Invariants:
 * - A key is never processed by two tasks at a time. The key of work that ignores its signal stays active
 *   until that work has settled, however late; only then does its backoff begin.
 * - At most `concurrency` tasks that are within their limit are running. An overdue task frees its slot for
 *   another key, so that it does not starve the pool, but at most `maxOverdue` tasks do: at most
 *   `concurrency + maxOverdue` are running in total.
 */
export class WorkerPool<Item> {
	readonly #options: WorkerPoolOptions<Item>;
	readonly #queue: MergingQueue<Item>;
	readonly #pump: Pump;
	/** Running tasks by key, in the order in which they were started. */
	readonly #tasks = new Map<string, Task>();
	readonly #limits: LimitSweep;
	/** Keys whose task is overdue and has freed its slot. */
	readonly #overdue = new Set<string>();
	readonly #idle: (() => void)[] = [];
	readonly #room: { readonly limit: number; readonly resolve: () => void }[] = [];
	/** The number of tasks that occupy a slot. */
	#working = 0;
	#stopped = false;

	constructor(options: WorkerPoolOptions<Item>) {
		this.#options = options;
		this.#pump = new Pump(options.runtime.scheduler, () => this.#step());
		this.#queue = new MergingQueue({
			clock: options.runtime.clock,
			backoff: options.backoff,
			...(options.runtime.random && { random: options.runtime.random }),
			onReady: () => this.#pump.wake(),
			...(options.merge && { merge: options.merge }),
		});
		const { clock } = options.runtime;
		this.#limits = new LimitSweep({
			clock,
			reportAfterMs: options.reportAfterMs,
			limitMs: options.timeLimitMs,
			tasks: () => this.#tasks.values(),
			onReport: ({ key, startedMs }) =>
				options.onStillRunning({ key, runningMs: clock.monotonic() - startedMs }),
			onLimit: (task) => this.#passedLimit(task),
		});
	}

	/** Adds an item that can be processed after `delayMs` milliseconds, by default immediately. */
	add(key: string, item: Item, priority: Priority, delayMs = 0): void {
		this.#queue.add(key, item, priority, delayMs);
	}

	/**
	 * Adds an item as `MergingQueue.gather` does. Returns whether its key is held by that, and must be released.
	 */
	gather(key: string, item: Item, priority: Priority): boolean {
		return this.#queue.gather(key, item, priority);
	}

	/** Releases a key that `mustWait` or `gather` held. */
	release(key: string): void {
		this.#queue.release(key);
	}

	/** Starts no work of background priority until `resumeBackground`. */
	pauseBackground(): void {
		this.#queue.pauseBackground();
	}

	/** Ends `pauseBackground`. */
	resumeBackground(): void {
		this.#queue.resumeBackground();
	}

	/** Whether a key is ready, and a worker is free for it. */
	get canStart(): boolean {
		return !this.#stopped && this.#queue.ready > 0 && this.#working < this.#options.concurrency;
	}

	/** Locks the key until the promise, which must not reject, has settled. */
	lock(key: string, item: Item, until: Promise<void>): void {
		const entry = this.#queue.lock(key, item);
		void until.then(() => {
			this.#queue.done(entry);
			this.#pump.wake();
		});
	}

	/** Stops taking items from the queue, and drops the queued ones. */
	stop(): void {
		this.#stopped = true;
		this.#queue.close();
		this.#makeRoom();
		if (this.#tasks.size === 0) {
			this.#limits.cancel();
		}
	}

	/** Drops the queued items of the keys that match. Running tasks continue. */
	drop(matches: (key: string) => boolean): void {
		this.#queue.drop(matches);
		this.#makeRoom();
	}

	/** Aborts all running tasks, or those of the keys that match. */
	abort(reason: unknown, matches: (key: string) => boolean = () => true): void {
		for (const task of this.#tasks.values()) {
			if (matches(task.key)) {
				task.abort(reason);
			}
		}
	}

	/** Resolves when no task is running, including overdue ones. */
	idle(): Promise<void> {
		return this.#tasks.size === 0
			? Promise.resolve()
			: new Promise((resolve) => this.#idle.push(resolve));
	}

	/** Whether nothing is queued, delayed or running. */
	get empty(): boolean {
		return this.#queue.idle;
	}

	/**
	 * Resolves when fewer than `limit` keys are ready; immediately after `stop`. Producers that can wait
	 * use it for back-pressure.
	 */
	room(limit: number): Promise<void> | undefined {
		return this.#stopped || this.#queue.ready < limit
			? undefined
			: new Promise((resolve) => this.#room.push({ limit, resolve }));
	}

	/** The end of each running task, by key. */
	get working(): ReadonlyMap<string, Promise<void>> {
		return new Map([...this.#tasks].map(([key, task]) => [key, task.ended]));
	}

	/** The keys whose work has exceeded its time limit. */
	get overdue(): readonly string[] {
		return this.#tasksFrom("overdue").map(({ key }) => key);
	}

	/** Work that has exceeded `reportAfterMs`, including overdue work; the longest-running first. */
	get stillRunning(): readonly RunningWork[] {
		const nowMs = this.#options.runtime.clock.monotonic();
		return this.#tasksFrom("reported", "overdue").map(({ key, startedMs }) => ({
			key,
			runningMs: nowMs - startedMs,
		}));
	}

	#tasksFrom(...stages: readonly TaskStage[]): readonly Task[] {
		return [...this.#tasks.values()].filter(({ stage }) => stages.includes(stage));
	}

	state(): QueueState {
		return this.#queue.state();
	}

	/** Up to `limit` of the keys whose work failed last; first those that have failed for longest. */
	failing(limit: number): readonly PooledKey[] {
		return this.#queue.failing(limit).map((each) => this.#pooled(each));
	}

	/** Up to `limit` of the keys that are being processed, the longest-running first. */
	running(limit: number): readonly PooledKey[] {
		const states: PooledKey[] = [];
		for (const { key } of this.#tasks.values()) {
			const state = states.length < limit ? this.keyState(key) : undefined;
			if (state !== undefined) {
				states.push(state);
			}
		}
		return states;
	}

	/** The state of a key; `undefined` if it is neither queued nor being processed. */
	keyState(key: string): PooledKey | undefined {
		const state = this.#queue.stateOf(key);
		return state && this.#pooled(state);
	}

	#pooled(state: KeyState): PooledKey {
		const task = this.#tasks.get(state.key);
		const nowMs = this.#options.runtime.clock.monotonic();
		return {
			...state,
			runningMs: task && nowMs - task.startedMs,
			isOverdue: task?.stage === "overdue",
		};
	}

	#step(): boolean {
		if (this.#stopped || this.#working >= this.#options.concurrency) {
			return false;
		}
		const entry = this.#queue.take();
		if (entry === undefined) {
			return false;
		}
		if (this.#options.mustWait?.(entry.key)) {
			this.#queue.hold(entry);
		} else {
			this.#start(entry);
		}
		return true;
	}

	#start(entry: QueueEntry<Item>): void {
		const task = new Task(entry.key);
		let outcome: Outcome | Promise<Outcome>;
		this.#tasks.set(entry.key, task);
		this.#working += 1;
		try {
			outcome = this.#options.work(entry.item, task, entry.priority);
		} catch (error) {
			this.#failed(entry, task, error);
			return;
		}
		if (!(outcome instanceof Promise)) {
			this.#succeeded(entry, task, outcome);
			return;
		}
		this.#limits.watch(task);
		void outcome.then(
			(value) => {
				if (task.stage === "overdue") {
					this.#failed(entry, task, this.#limitError(task));
				} else {
					this.#succeeded(entry, task, value);
				}
			},
			(error: unknown) => {
				const isOverdue = task.stage === "overdue";
				this.#failed(entry, task, isOverdue ? this.#limitError(task, error) : error);
			},
		);
	}

	#succeeded(entry: QueueEntry<Item>, task: Task, outcome: Outcome): void {
		if (outcome.kind === "again") {
			this.#queue.doneUntil(entry, outcome.delayMs);
		} else {
			this.#queue.done(entry);
		}
		this.#ended(task);
	}

	#failed(entry: QueueEntry<Item>, task: Task, error: unknown): void {
		const delayMs = this.#queue.fail(entry, error);
		const { key, failures } = entry;
		try {
			this.#options.onFailure({ key, error, failures, delayMs });
		} catch {
			// A log that can't take the error must neither keep the slot nor end the process. The state of the key has it.
		}
		this.#ended(task);
	}

	#passedLimit(task: Task): void {
		if (this.#overdue.size < maxOverdue) {
			this.#overdue.add(task.key);
			this.#working -= 1;
			this.#pump.wake();
		}
		this.#options.onOverdue(task.key);
		task.abort(this.#limitError(task));
	}

	#limitError({ key }: Task, cause?: unknown): TimeLimitError {
		return new TimeLimitError(key, this.#options.timeLimitMs, cause === undefined ? {} : { cause });
	}

	#makeRoom(): void {
		if (this.#room.length === 0) {
			return;
		}
		// They wait for different limits: one that is not met holds up no other.
		for (const waiting of this.#room.splice(0)) {
			if (this.#queue.ready < waiting.limit) {
				waiting.resolve();
			} else {
				this.#room.push(waiting);
			}
		}
	}

	#ended(task: Task): void {
		this.#tasks.delete(task.key);
		task.end();
		this.#makeRoom();
		if (!this.#overdue.delete(task.key)) {
			this.#working -= 1;
		}
		if (this.#queue.ready > 0) {
			this.#pump.wake();
		}
		if (this.#tasks.size === 0) {
			if (this.#stopped) {
				this.#limits.cancel();
			}
			for (const resolve of this.#idle.splice(0)) {
				resolve();
			}
		}
	}
}
