import type { Clock, Timer } from "@plinth/runtime";
import type { Task } from "./task.ts";

/** What a sweep watches, and what it calls. */
export interface LimitSweepOptions {
	readonly clock: Clock;
	/** After this many milliseconds, work is reported as still running. */
	readonly reportAfterMs: number;
	/** After this many milliseconds, work is overdue. */
	readonly limitMs: number;
	/** The work under way, in the order in which it was started. */
	readonly tasks: () => Iterable<Task>;
	/** The work has passed `reportAfterMs`. Called once per task, and not where the limit comes first. */
	readonly onReport: (task: Task) => void;
	/** The work has passed `limitMs`. Called once per task. */
	readonly onLimit: (task: Task) => void;
}

/**
 * Applies time limits to work with one timer, however much work is under way.
 *
 * Invariants:
 * - While there is a task that is not overdue, a timer is set that fires no later than the first of
 *   their deadlines. So each deadline is observed exactly, and starting a task sets a timer only
 *   where none is set.
 * - A task goes through the stages `running`, `reported`, `overdue` in this order, each once.
 */
export class LimitSweep {
	readonly #options: LimitSweepOptions;
	/** The earliest that any task can reach a deadline after its start. */
	readonly #firstMs: number;
	#timer: Timer | undefined;

	constructor(options: LimitSweepOptions) {
		this.#options = options;
		this.#firstMs = Math.min(options.reportAfterMs, options.limitMs);
	}

	/** Starts to watch a task, which `tasks` must return from now on. */
	watch(task: Task): void {
		task.startedMs = this.#options.clock.monotonic();
		if (this.#timer === undefined) {
			this.#arm(this.#firstMs);
		}
	}

	/** Cancels the timer, for when there is no work left. The next `watch` sets it again. */
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
		// Callbacks run last: they may start and end work.
		reported.forEach(onReport);
		overdue.forEach(onLimit);
	}
}
