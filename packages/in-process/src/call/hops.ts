import { EventLoopScheduler, type Scheduler } from "@plinth/runtime";

/** Runs a task on the other side of a call. */
export type Hop = (task: () => void) => void;

/** How the two sides of a call, the caller's and the handler's, reach each other. */
export interface Hops {
	/** Runs a task on the other side, never within the stack of the caller. */
	readonly ask: Hop;
	/** Like `ask`, for a call with one response, which `answer` delivers later. */
	readonly call: Hop;
	/** Delivers the response to a `call`. See `respond`. */
	readonly answer: Hop;
	/** The call is over and has no response, because it never reached the other side. */
	readonly drop: () => void;
	/**
	 * Asks the other side for the next message of a stream. As with a generator, the task may start
	 * within the stack of `next()`.
	 */
	readonly pull: Hop;
	/**
	 * Delivers a message of a stream, or its end, to the other side. The task may only settle promises and
	 * update state: code that awaits a promise runs in its own stack anyway.
	 */
	readonly respond: Hop;
}

const settled = Promise.resolve();

/**
 * The hops of the scheduler of a process, without overhead while there is time: a promise's continuation is a microtask
 * too, and a promise that settles synchronously still wakes its reader in a microtask. Calls, and messages of streams,
 * take turns with all other loops of the process. Responses do not: each belongs to a call that has had its turn.
 */
function hopsInTurn(scheduler: EventLoopScheduler): Hops {
	return {
		ask: (task) => scheduler.schedule(task),
		call: (task) => {
			void (scheduler.beginCall() ?? settled).then(task);
		},
		answer: (task) => {
			scheduler.endCall();
			task();
		},
		drop: () => scheduler.endCall(),
		pull: (task) => {
			const turn = scheduler.turn();
			if (turn === undefined) {
				task();
			} else {
				void turn.then(task);
			}
		},
		respond: (task) => task(),
	};
}

/** The hops that go through the given scheduler. */
export function hopsThrough(scheduler: Scheduler): Hops {
	if (scheduler instanceof EventLoopScheduler) {
		return hopsInTurn(scheduler);
	}
	const hop: Hop = (task) => scheduler.schedule(task);
	return { ask: hop, call: hop, answer: hop, drop: () => {}, pull: hop, respond: hop };
}
