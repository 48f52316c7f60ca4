import { EventLoopScheduler } from "./event-loop-scheduler.ts";

/**
 * The scheduler of this process. It runs tasks as microtasks, in the order of the calls; after some milliseconds in
 * one iteration of the event loop, the others run in the next one.
 */
export const systemScheduler = new EventLoopScheduler({
	now: () => performance.now(),
	nextIteration: (callback) => {
		setImmediate(callback);
	},
	// A tick that a microtask queues runs when no microtask is left.
	microtasksDone: (callback) => queueMicrotask(() => process.nextTick(callback)),
});
