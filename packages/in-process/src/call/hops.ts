import { type Scheduler, systemScheduler } from "@plinth/runtime";

/** Runs a task on the other side of a call. */
export type Hop = (task: () => void) => void;

/** How the two sides of a call, the caller's and the handler's, reach each other. */
export interface Hops {
	/** Runs a task on the other side, never within the stack of the caller. */
	readonly ask: Hop;
	/**
	 * Asks the other side for the next message of a stream. As with a generator, the task may start
	 * within the stack of `next()`.
	 */
	readonly pull: Hop;
	/**
	 * Delivers a response to the other side. The task may only settle promises and update state:
	 * code that awaits a promise runs in its own stack anyway.
	 */
	readonly respond: Hop;
}

const settled = Promise.resolve();

/**
 * The hops of the real scheduler, without its overhead: a promise's continuation is a microtask too,
 * and a promise that settles synchronously still wakes its reader in a microtask.
 */
const systemHops: Hops = {
	ask: (task) => {
		void settled.then(task);
	},
	pull: (task) => task(),
	respond: (task) => task(),
};

/** The hops that go through the given scheduler. */
export function hopsThrough(scheduler: Scheduler): Hops {
	if (scheduler === systemScheduler) {
		return systemHops;
	}
	const hop: Hop = (task) => scheduler.schedule(task);
	return { ask: hop, pull: hop, respond: hop };
}
