import type { Scheduler } from "@plinth/runtime";

/** How many steps a pump makes before it yields to the event loop. */
const stepsPerTurn = 256;

/**
 * Makes steps while there are any, in turns. Each turn starts on the scheduler, never within the call that
 * woke the pump. After many steps without yielding to the event loop, over any number of turns, the next
 * turn yields first: a backlog of a million steps, which may consist of microtasks only, must not block
 * timers and sockets.
 */
export class Pump {
	readonly #scheduler: Scheduler;
	readonly #step: () => boolean;
	/** Whether a turn is scheduled or running. */
	#awake = false;
	/** Steps since the event loop last ran, as far as is known. */
	#steps = 0;
	#resetScheduled = false;

	/** `step` makes one step, if there is one, and returns whether it did. It must not throw. */
	constructor(scheduler: Scheduler, step: () => boolean) {
		this.#scheduler = scheduler;
		this.#step = step;
	}

	/** There may be steps to make. */
	wake(): void {
		if (this.#awake) {
			return;
		}
		this.#awake = true;
		if (this.#steps < stepsPerTurn) {
			this.#scheduler.schedule(this.#turn);
		} else {
			setImmediate(this.#turn);
		}
	}

	readonly #turn = (): void => {
		if (!this.#resetScheduled) {
			this.#resetScheduled = true;
			this.#steps = 0;
			setImmediate(this.#eventLoopRan);
		}
		while (this.#steps < stepsPerTurn) {
			if (!this.#step()) {
				this.#awake = false;
				return;
			}
			this.#steps += 1;
		}
		setImmediate(this.#turn);
	};

	readonly #eventLoopRan = (): void => {
		this.#resetScheduled = false;
		this.#steps = 0;
	};
}

/** Yields to the event loop, so that timers and I/O can run. */
export function yieldToEventLoop(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}
