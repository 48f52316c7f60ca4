import type { Random } from "../random.ts";
import type { Scheduler } from "../scheduler.ts";
import { FakeClock } from "./fake-clock.ts";
import { seededRandom } from "./seeded-random.ts";

/** Options of a seeded scheduler. */
export interface SeededSchedulerOptions {
	/** Decides the order: the same seed gives the same run. */
	readonly seed: number;
	/** The initial wall-clock time, in milliseconds since the epoch. */
	readonly nowMs?: number;
	/** How many steps (tasks and moves of the clock) one call may take; a million by default. */
	readonly maxSteps?: number;
	/** The share of the turns of loops (`turn`) that wait, as if the event loop were busy. None by default. */
	readonly waitingTurns?: number;
}

/**
 * Runs concurrent tasks in an order that a seed decides, on its own clock. Tasks that are ready wait here,
 * tasks that wait for time wait on the clock:
 *
 * ```
 *   schedule(task) ──▶ ready: [ t1, t2, t3, … ] ──▶ one of them, drawn
 *     ▲                         ▲                     │ its promises settle, and add tasks
 *     │ timers that come due    └─────────────────────┘
 *   clock ◀── moved to the next timer when nothing is ready
 * ```
 *
 * One task runs at a time, and the next is drawn only when no promise can settle without another task.
 * Code that uses nothing else of its environment therefore depends on the seed alone. Tasks run only
 * while one of the methods that return promises is active; if several are, they take turns.
 */
export class SeededScheduler implements Scheduler {
	readonly seed: number;
	readonly clock: FakeClock;
	readonly #random: Random;
	readonly #maxSteps: number;
	readonly #waitingTurns: number;
	/** A stream of its own: the turns of loops must not change the order of tasks. */
	readonly #turnRandom: Random;
	readonly #ready: (() => void)[] = [];
	/** The calls that are active; the first one makes the next step. */
	readonly #loops: Loop[] = [];
	#isActive = false;
	#stepsSinceYield = 0;

	constructor(options: SeededSchedulerOptions) {
		const { seed, nowMs, maxSteps = 1_000_000, waitingTurns = 0 } = options;
		this.seed = seed;
		this.#maxSteps = maxSteps;
		this.#waitingTurns = waitingTurns;
		this.#turnRandom = seededRandom(seed ^ 0x5bd1e995);
		this.#random = seededRandom(seed);
		this.clock = new FakeClock({
			...(nowMs !== undefined && { nowMs }),
			deliver: (callback) => this.schedule(callback),
		});
	}

	/** The number of tasks that are ready. */
	get ready(): number {
		return this.#ready.length;
	}

	schedule(task: () => void): void {
		this.#ready.push(task);
	}

	turn(): Promise<void> | undefined {
		return this.#turnRandom.next() < this.#waitingTurns ? this.pause() : undefined;
	}

	/** Resolves later: any other ready task may run first. */
	pause(): Promise<void> {
		return new Promise((resolve) => this.schedule(resolve));
	}

	/** Runs up to `count` tasks without moving the clock. Returns false if it ran out of tasks. */
	async runSome(count: number): Promise<boolean> {
		let ran = 0;
		if (count > 0) {
			await this.#loop(() => {
				const hasRun = this.#runOne();
				ran += hasRun ? 1 : 0;
				return hasRun && ran < count;
			});
		}
		return ran >= count;
	}

	/** Runs all tasks that need no time. */
	drain(): Promise<void> {
		const steps = this.#counter("with tasks left to run");
		return this.#loop(() => {
			steps.count();
			return this.#runOne();
		});
	}

	/** Lets that many milliseconds pass, and runs all tasks that come due. */
	async advance(byMs: number): Promise<void> {
		const endMs = this.clock.monotonic() + byMs;
		const steps = this.#counter(`before ${byMs} ms had passed`);
		await this.#loop(() => {
			steps.count();
			return this.#runOne() || this.#advanceToTimers(endMs);
		});
		this.clock.advance(endMs - this.clock.monotonic());
		await this.drain();
	}

	/**
	 * Runs all tasks, moving the clock whenever none is left, until the promise has settled. Settles as
	 * the promise does.
	 *
	 * @throws Error if no task is left and no timer is set.
	 */
	run<T>(main: Promise<T>): Promise<T> {
		const steps = this.#counter("and the promise is still pending");
		return this.#whilePending(main, () => {
			steps.count();
			if (!this.#runOne() && !this.#advanceToTimers()) {
				throw this.#error(
					"nothing is left to run, no timer is set, and the promise is still pending",
				);
			}
			return true;
		});
	}

	/**
	 * Runs all tasks that need no time, or until the promise has settled. Returns the promise, which may
	 * still be pending.
	 */
	drive<T>(main: Promise<T>): Promise<T> {
		const steps = this.#counter("with tasks left to run");
		return this.#whilePending(main, () => {
			steps.count();
			return this.#runOne();
		});
	}

	/**
	 * Runs all tasks, moving the clock, until the condition holds with no task left. It is checked
	 * whenever no task is left, each time before the clock moves.
	 *
	 * @param options - `limitMs` is the longest time that may pass; an hour by default. `describe`
	 *   adds to the error what is still missing.
	 * @throws Error if the condition does not hold within the limit.
	 */
	until(
		condition: () => boolean,
		options: { readonly limitMs?: number; readonly describe?: () => string } = {},
	): Promise<void> {
		const { limitMs = 3_600_000, describe } = options;
		const endMs = this.clock.monotonic() + limitMs;
		const steps = this.#counter("without coming to rest", describe);
		return this.#loop(() => {
			if (this.#runOne()) {
				steps.count();
				return true;
			}
			if (condition()) {
				return false;
			}
			steps.count();
			if (!this.#advanceToTimers(endMs)) {
				const why =
					this.clock.nextTimerMs() === undefined
						? "nothing is left to run and no timer is set"
						: `${limitMs} ms have passed`;
				throw this.#error(`${why}, and the condition still does not hold`, describe);
			}
			return true;
		});
	}

	/** Makes steps until the promise settles, and settles with it at once. */
	#whilePending<T>(main: Promise<T>, step: () => boolean): Promise<T> {
		let isOver = false;
		const settle = () => {
			isOver = true;
		};
		main.then(settle, settle);
		return Promise.race([main, this.#loop(() => !isOver && step()).then(() => main)]);
	}

	/** Moves time to the next timer; all timers due at that instant become ready. */
	#advanceToTimers(untilMs?: number): boolean {
		const moved = this.clock.advanceToTimer(untilMs);
		while (moved && this.clock.advanceToTimer(this.clock.monotonic())) {}
		return moved;
	}

	/** Lets promises settle and makes a step, again and again, until one returns false. Rejects if one throws. */
	#loop(step: () => boolean): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#loops.push({ step, resolve, reject });
			if (!this.#isActive) {
				this.#isActive = true;
				this.#settle();
			}
		});
	}

	// Callbacks instead of promises: there is a step for each task, and these would cost as much as most tasks.

	/** Goes on when no promise can settle without another task. */
	#settle(): void {
		// A tick that a microtask queues runs when no microtask is left. `queueMicrotask` would cost several times as much.
		void settled.then(this.#queueTick);
	}

	readonly #queueTick = (): void => {
		process.nextTick(this.#settled);
	};

	/** If no task is ready, code may still be waiting for an iteration of the event loop (`setImmediate`). */
	readonly #settled = (): void => {
		this.#stepsSinceYield += 1;
		const isIdle = this.#ready.length === 0 && isLoopAwaited();
		if (isIdle || this.#stepsSinceYield > stepsInARow) {
			this.#stepsSinceYield = 0;
			setImmediate(this.#loopRan);
		} else {
			this.#step();
		}
	};

	readonly #loopRan = (): void => {
		if (this.#ready.length === 0 && isLoopAwaited()) {
			setImmediate(this.#step);
		} else {
			this.#step();
		}
	};

	readonly #step = (): void => {
		const loop = this.#loops.shift();
		if (loop !== undefined) {
			try {
				if (loop.step()) {
					this.#loops.push(loop);
				} else {
					loop.resolve();
				}
			} catch (failure) {
				loop.reject(failure);
			}
		}
		this.#isActive = this.#loops.length > 0;
		if (this.#isActive) {
			this.#settle();
		}
	};

	#runOne(): boolean {
		const index = Math.floor(this.#random.next() * this.#ready.length);
		const task = this.#ready[index];
		if (task === undefined) {
			return false;
		}
		const last = this.#ready.pop();
		if (last !== undefined && index < this.#ready.length) {
			this.#ready[index] = last;
		}
		task();
		return true;
	}

	#counter(what: string, describe?: () => string): { count(): void } {
		let left = this.#maxSteps;
		return {
			count: () => {
				left -= 1;
				if (left < 0) {
					throw this.#error(`${this.#maxSteps} steps ${what}: is there an endless loop?`, describe);
				}
			},
		};
	}

	#error(message: string, describe?: () => string): Error {
		const more = describe === undefined ? "" : `: ${describe()}`;
		return new Error(`seed ${this.seed}: ${message}${more}`);
	}
}

/** A call that makes steps. */
interface Loop {
	/** Returns whether there may be another one. */
	readonly step: () => boolean;
	readonly resolve: () => void;
	readonly reject: (failure: unknown) => void;
}

const settled = Promise.resolve();

/** How many steps are made before the event loop gets a turn. */
const stepsInARow = 512;

/** Whether any code waits for an iteration of the event loop. An iteration takes longer than most tasks. */
function isLoopAwaited(): boolean {
	return process.getActiveResourcesInfo().includes("Immediate");
}
