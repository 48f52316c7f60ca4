import type { EventLoop } from "../event-loop-scheduler.ts";
import type { Random } from "../random.ts";
import type { Scheduler } from "../scheduler.ts";

/** The longest duration of a call, in milliseconds. */
const longestCallMs = 0.5;

/** Options of a seeded event loop. */
export interface SeededEventLoopOptions {
	/** `false` plants a fault: its time stands still, so that the time for loops never ends. */
	readonly hasBudget?: boolean;
}

/**
 * The event loop of a simulated process, for an `EventLoopScheduler`: its iterations are tasks of the simulation's
 * scheduler, and each call takes a drawn time. Loops that never wait for anything else then starve the other tasks
 * of the process for as long as that scheduler lets them, and this records how long that was.
 */
export class SeededEventLoop implements EventLoop {
	/** The time that loops may use in one iteration: the budget, and the turns that ignore it. */
	static readonly longestAllowedMs = 5 + 48 * longestCallMs;
	/** The longest time in which nothing else could run, in milliseconds. */
	longestMs = 0;
	readonly #scheduler: Scheduler;
	readonly #random: Random;
	readonly #hasBudget: boolean;
	#nowMs = 0;
	#sinceMs = 0;

	constructor(scheduler: Scheduler, random: Random, options: SeededEventLoopOptions = {}) {
		this.#scheduler = scheduler;
		this.#random = random;
		this.#hasBudget = options.hasBudget ?? true;
	}

	/** A call of the process runs, and takes its time. */
	readonly call = (): void => {
		this.#nowMs += this.#random.next() * longestCallMs;
		this.longestMs = Math.max(this.longestMs, this.#nowMs - this.#sinceMs);
	};

	now(): number {
		return this.#hasBudget ? this.#nowMs : 0;
	}

	nextIteration(callback: () => void): void {
		this.#scheduler.schedule(() => {
			this.#sinceMs = this.#nowMs;
			callback();
		});
	}

	microtasksDone(callback: () => void): void {
		// The simulation runs a task when no promise can settle without it.
		queueMicrotask(() => process.nextTick(callback));
	}
}
