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
}

/** Runs tasks as microtasks: before any timer or any input, in the order of the calls. */
export const systemScheduler: Scheduler = {
	schedule: (task) => queueMicrotask(task),
	scheduleAfterInput: (task) => void setImmediate(task),
};

/** Runs `task` in a later iteration of the event loop, if the scheduler knows them; otherwise at any later time. */
export function scheduleAfterInput(scheduler: Scheduler, task: () => void): void {
	if (scheduler.scheduleAfterInput === undefined) {
		scheduler.schedule(task);
	} else {
		scheduler.scheduleAfterInput(task);
	}
}
