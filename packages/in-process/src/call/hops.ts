import { type Scheduler, systemScheduler } from "@plinth/runtime";

/** Runs a task on the other side of a call. */
export type Hop = (task: () => void) => void;

/** How the two sides of a call, the caller's and the handler's, reach each other. */
export interface Hops {
	/** Has the other side do something: the task never runs within the stack of this one. */
	readonly ask: Hop;
	/**
	 * Has the other side make the next message of a stream. As a generator does, it may begin
	 * within the stack of the `next()` that asks for it.
	 */
	readonly pull: Hop;
	/**
	 * Gives the other side an answer. The task may only settle promises and keep books: whoever
	 * awaits a promise runs in a stack of its own anyway.
	 */
	readonly answer: Hop;
}

const settled = Promise.resolve();

/**
 * The hops of the real scheduler, at less than its price: a promise's continuation is a microtask
 * too, and a promise that is settled at once still wakes its reader in a microtask.
 */
const systemHops: Hops = {
	ask: (task) => {
		void settled.then(task);
	},
	pull: (task) => task(),
	answer: (task) => task(),
};

/** The hops that go through the given scheduler. */
export function hopsThrough(scheduler: Scheduler): Hops {
	if (scheduler === systemScheduler) {
		return systemHops;
	}
	const hop: Hop = (task) => scheduler.schedule(task);
	return { ask: hop, pull: hop, answer: hop };
}
