import type { Clock, Timer } from "@plinth/runtime";
import type { Task } from "./task.ts";

/** The options of a limit sweep. */
export interface LimitSweepOptions {
	readonly clock: Clock;
	/** After this many milliseconds, work is reported as still running. */
	readonly reportAfterMs: number;
	/** After this many milliseconds, work is overdue. */
	readonly limitMs: number;
	/** The running tasks, in the order in which they were started. */
	readonly tasks: () => Iterable<Task>;
	/** The task has exceeded `reportAfterMs`. Called at most once per task, and not if the limit comes first. */
	readonly onReport: (task: Task) => void;
	/** The task has exceeded `limitMs`. Called at most once per task. */
	readonly onLimit: (task: Task) => void;
}

/**
 * Applies time limits to any number of running tasks with one timer.
 *
 * Invariants:
 * - While any task is not overdue, a timer is set that fires no later than the earliest deadline. So
 *   each deadline is observed exactly, and starting a task sets a timer only if none is set.
 * - A task goes through the stages `running`, `reported`, `overdue` in this order, each once.
 */
export class LimitSweep {
	readonly #options: LimitSweepOptions;
	/** The shortest time after its start at which a task can reach a deadline. */
	readonly #firstMs: number;
	#timer: Timer | undefined;

	constructor(options: LimitSweepOptions) {
		this.#options = options;
		this.#firstMs = Math.min(options.reportAfterMs, options.limitMs);
	}

	/** Starts watching a task, which `tasks` must return from now on. */
	watch(task: Task): void {
		task.startedMs = this.#options.clock.monotonic();
		if (this.#timer === undefined) {
			this.#arm(this.#firstMs);
		}
	}

	/** Cancels the timer when no task is left. The next `watch` sets it again. */
	cancel(): void {
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	#arm(delayMs: number): void {
		this.#timer = this.#options.clock.setTimer(delayMs, () => {
			this.#timer = undefined;
			this.#sweep();
		});
	}

	#sweep(): void {
		const { clock, reportAfterMs, limitMs, tasks, onReport, onLimit } = this.#options;
		const nowMs = clock.monotonic();
		const reported: Task[] = [];
		const overdue: Task[] = [];
		let nextMs = Number.POSITIVE_INFINITY;
		for (const task of tasks()) {
			const runningMs = nowMs - task.startedMs;
			if (task.stage === "overdue") {
				continue;
			}
			if (runningMs >= limitMs) {
				task.stage = "overdue";
				overdue.push(task);
				continue;
			}
			if (task.stage === "running" && runningMs >= reportAfterMs) {
				task.stage = "reported";
				reported.push(task);
			}
			nextMs = Math.min(nextMs, (task.stage === "running" ? this.#firstMs : limitMs) - runningMs);
			if (task.stage === "running") {
				// All others were started later.
				break;
			}
		}
		if (nextMs !== Number.POSITIVE_INFINITY) {
			this.#arm(nextMs);
		}
		// Callbacks run last: they may start and end tasks.
		reported.forEach(onReport);
		overdue.forEach(onLimit);
	}
}
