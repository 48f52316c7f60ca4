/**
 * Decides when concurrent work runs. Code that hands over work (waking a watch, taking an item from a
 * queue, delivering a message) does so through a scheduler, so that a test can run a whole server
 * through many interleavings and replay each by its seed.
 */
export interface Scheduler {
	/**
	 * Runs `task` later, never within the call. The system scheduler keeps the order of calls; code
	 * must not rely on that. A task must not throw.
	 */
	schedule(task: () => void): void;

	/**
	 * As `schedule`, but in a later iteration of the event loop: input that has arrived is handled first. A scheduler
	 * whose tasks run in any order anyway needs no such method; use `scheduleAfterInput`.
	 */
	scheduleAfterInput?(task: () => void): void;

	/**
	 * For a loop that may run long without waiting for time or input: to be called and awaited before each
	 * step. Resolves when the step may run; returns `undefined` if it may run at once.
	 */
	turn(): Promise<void> | undefined;

	/** Whether turns or tasks wait for the event loop. Not known of a scheduler whose tasks run in any order anyway. */
	readonly isBehind?: boolean;
}

/** Runs `task` in a later iteration of the event loop, if the scheduler knows them; otherwise at any later time. */
export function scheduleAfterInput(scheduler: Scheduler, task: () => void): void {
	if (scheduler.scheduleAfterInput === undefined) {
		scheduler.schedule(task);
	} else {
		scheduler.scheduleAfterInput(task);
	}
}
