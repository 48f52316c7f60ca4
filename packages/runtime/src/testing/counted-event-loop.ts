import type { EventLoop } from "../event-loop-scheduler.ts";

/**
 * The event loop of this process for an `EventLoopScheduler`, with the duration of work as a test defines it and with a
 * record of how much ran in each iteration. So a test finds a loop that blocks the process without measuring time.
 */
export class CountedEventLoop implements EventLoop {
	/** The time since the beginning, in milliseconds. It moves when work runs. */
	nowMs = 0;
	/** The iterations in which the scheduler was called. */
	iterations = 0;
	/** The longest work without an iteration in between, in milliseconds. */
	longestMs = 0;
	#sinceMs = 0;

	now(): number {
		return this.nowMs;
	}

	/** Work of that duration runs now. */
	work(durationMs: number): void {
		this.nowMs += durationMs;
		this.longestMs = Math.max(this.longestMs, this.nowMs - this.#sinceMs);
	}

	nextIteration(callback: () => void): void {
		setImmediate(() => {
			this.iterations += 1;
			this.#sinceMs = this.nowMs;
			callback();
		});
	}

	microtasksDone(callback: () => void): void {
		queueMicrotask(() => process.nextTick(callback));
	}
}
