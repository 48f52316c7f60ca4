/**
 * When things that may overlap run. Code that hands work to someone else (a watch that wakes, a
 * queue that hands out an item, a message that arrives) does so through a scheduler, so that a test
 * can run a whole server through many interleavings, each replayed by its seed.
 */
export interface Scheduler {
	/**
	 * Runs `task` later, never within the call. The real scheduler keeps the order of calls; code
	 * must not rely on it. A task must not throw.
	 */
	schedule(task: () => void): void;
}

/** Runs tasks as microtasks: before any timer or any input, in the order of the calls. */
export const systemScheduler: Scheduler = {
	schedule: (task) => queueMicrotask(task),
};
