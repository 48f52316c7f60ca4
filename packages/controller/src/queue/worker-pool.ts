import type { BackoffPolicy, Runtime } from "@plinth/runtime";
import { LimitSweep } from "./limit-sweep.ts";
import { MergingQueue, type QueueState } from "./merging-queue.ts";
import { Pump } from "./pump.ts";
import type { Priority, QueueEntry } from "./queue-entry.ts";
import { Task, type TaskStage } from "./task.ts";

/** What comes of a piece of work that did not fail. */
export type Outcome =
	| { readonly kind: "done" }
	/** To be done again, `delayMs` milliseconds from now at the latest. */
	| { readonly kind: "again"; readonly delayMs: number };

/** A failed piece of work, for the log. */
export interface Failure {
	readonly key: string;
	readonly error: unknown;
	/** Failures of the key in a row, this one included. */
	readonly failures: number;
	/** When the key comes back, in milliseconds. */
	readonly delayMs: number;
}

/** What a pool is made with. */
export interface WorkerPoolOptions<Item> {
	readonly runtime: Pick<Runtime, "clock" | "scheduler">;
	readonly backoff: BackoffPolicy;
	/** How many keys are worked on at once. */
	readonly concurrency: number;
	/** After how many milliseconds a piece of work is reported as still running. */
	readonly reportAfterMs: number;
	/** How long one piece of work may take, in milliseconds. */
	readonly timeLimitMs: number;
	readonly merge?: (earlier: Item, later: Item) => Item;
	/** Does the work. What it throws or rejects with is a failure of this item and nothing else. */
	readonly work: (item: Item, task: Task, priority: Priority) => Outcome | Promise<Outcome>;
	/** Whether the key must not be worked on before it is released. Asked each time it is its turn. */
	readonly mustWait?: (key: string) => boolean;
	readonly onFailure: (failure: Failure) => void;
	/** The work on the key has passed `reportAfterMs` and is still running. */
	readonly onStillRunning: (work: RunningWork) => void;
	/** The work on the key has passed its time limit. */
	readonly onOverdue: (key: string) => void;
}

/** A piece of work that has been running for longer than it should. */
export interface RunningWork {
	readonly key: string;
	/** For how long it has been running, in milliseconds. */
	readonly runningMs: number;
}

/** Past this many pieces of work that ignore their time limit, slots are no longer freed for others. */
const maxOverdue = 100;

/** A piece of work was aborted because it took too long. */
export class TimeLimitError extends Error {
	override readonly name = "TimeLimitError";

	constructor(key: string, limitMs: number, options?: ErrorOptions) {
		super(`${key} passed its time limit of ${limitMs} ms and was aborted`, options);
	}
}

/**
 * Works on the items of a keyed queue, up to `concurrency` keys at once.
 *
 * Work that passes `reportAfterMs` is reported. Work that passes `timeLimitMs` is aborted: its signal
 * aborts, and it counts as failed with a `TimeLimitError` once it has settled, whatever it returns.
 *
 * Invariants:
 * - A key is never worked on twice at once. The key of work that ignores its signal stays active until
 *   that work has settled, however late; only then does its backoff begin.
 * - At most `concurrency` pieces of work are under way that are within their limit. Work past its limit
 *   gives its slot to another key, so that it does not starve the pool, but no more than `maxOverdue`
 *   pieces of it do: at most `concurrency + maxOverdue` are under way in all.
 */
export class WorkerPool<Item> {
	readonly #options: WorkerPoolOptions<Item>;
	readonly #queue: MergingQueue<Item>;
	readonly #pump: Pump;
	/** By key, in the order in which they were started. */
	readonly #tasks = new Map<string, Task>();
	readonly #limits: LimitSweep;
	/** Keys whose work is past its limit and has given up its slot. */
	readonly #overdue = new Set<string>();
	readonly #idle: (() => void)[] = [];
	readonly #room: { readonly limit: number; readonly resolve: () => void }[] = [];
	/** Tasks that hold a slot. */
	#working = 0;
	#stopped = false;

	constructor(options: WorkerPoolOptions<Item>) {
		this.#options = options;
		this.#pump = new Pump(options.runtime.scheduler, () => this.#step());
		this.#queue = new MergingQueue({
			clock: options.runtime.clock,
			backoff: options.backoff,
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

	/** Adds an item, to be worked on at once or, at the earliest, in `delayMs` milliseconds. */
	add(key: string, item: Item, priority: Priority, delayMs = 0): void {
		this.#queue.add(key, item, priority, delayMs);
	}

	/** The key need wait no longer. */
	release(key: string): void {
		this.#queue.release(key);
	}

	/** Keeps the key from being worked on until the promise, which never rejects, has settled. */
	lock(key: string, item: Item, until: Promise<void>): void {
		const entry = this.#queue.lock(key, item);
		void until.then(() => {
			this.#queue.done(entry);
			this.#pump.wake();
		});
	}

	/** Takes nothing from the queue any more, and drops what waits in it. */
	stop(): void {
		this.#stopped = true;
		this.#queue.close();
		this.#makeRoom();
		if (this.#tasks.size === 0) {
			this.#limits.cancel();
		}
	}

	/** Tells all work under way to abort. */
	abort(reason: unknown): void {
		for (const task of this.#tasks.values()) {
			task.abort(reason);
		}
	}

	/** Resolves when no work is under way, overdue work included. */
	idle(): Promise<void> {
		return this.#tasks.size === 0
			? Promise.resolve()
			: new Promise((resolve) => this.#idle.push(resolve));
	}

	/** Whether nothing waits, now or for later, and nothing is under way. */
	get empty(): boolean {
		return this.#queue.idle;
	}

	/**
	 * Resolves when fewer than that many keys are ready to be worked on; at once after `stop`. Those
	 * who add from a source that can wait do it for this.
	 */
	room(limit: number): Promise<void> | undefined {
		return this.#stopped || this.#queue.ready < limit
			? undefined
			: new Promise((resolve) => this.#room.push({ limit, resolve }));
	}

	/** The work that is under way, by key, with its end. */
	get working(): ReadonlyMap<string, Promise<void>> {
		return new Map([...this.#tasks].map(([key, task]) => [key, task.ended]));
	}

	/** The keys whose work has passed its time limit. */
	get overdue(): readonly string[] {
		return this.#tasksFrom("overdue").map(({ key }) => key);
	}

	/** The work that has passed `reportAfterMs`, overdue work included; what has run longest comes first. */
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
			this.#failed(entry, error);
			this.#ended(task);
			return;
		}
		if (!(outcome instanceof Promise)) {
			this.#succeeded(entry, outcome);
			this.#ended(task);
			return;
		}
		this.#limits.watch(task);
		void outcome.then(
			(value) => {
				if (task.stage === "overdue") {
					this.#failed(entry, this.#limitError(task));
				} else {
					this.#succeeded(entry, value);
				}
				this.#ended(task);
			},
			(error: unknown) => {
				this.#failed(entry, task.stage === "overdue" ? this.#limitError(task, error) : error);
				this.#ended(task);
			},
		);
	}

	#succeeded(entry: QueueEntry<Item>, outcome: Outcome): void {
		if (outcome.kind === "again") {
			this.#queue.doneUntil(entry, outcome.delayMs);
		} else {
			this.#queue.done(entry);
		}
	}

	#failed(entry: QueueEntry<Item>, error: unknown): void {
		const delayMs = this.#queue.fail(entry);
		const { key, failures } = entry;
		this.#options.onFailure({ key, error, failures, delayMs });
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
		while (this.#room[0] !== undefined && this.#queue.ready < this.#room[0].limit) {
			this.#room.shift()?.resolve();
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
