import type { Scheduler } from "@plinth/runtime";

/** How many steps a pump makes before timers and input of the process get their turn. */
const stepsPerTurn = 256;

/**
 * Makes steps while there are any, in turns: each begins on the scheduler, never within the call
 * that woke the pump. After many steps, in however many turns, without anything else of the process
 * having had its chance, the next turn waits for that: a backlog of a million steps, whose work may be
 * all microtasks, must not keep timers and sockets waiting.
 */
export class Pump {
	readonly #scheduler: Scheduler;
	readonly #step: () => boolean;
	/** A turn is scheduled or under way. */
	#awake = false;
	/** Steps since the process had its chance, as far as is known. */
	#steps = 0;
	#countingDown = false;

	/** `step` makes one step and answers whether it did. It must not throw. */
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
		if (!this.#countingDown) {
			this.#countingDown = true;
			this.#steps = 0;
			setImmediate(this.#hadItsChance);
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

	readonly #hadItsChance = (): void => {
		this.#countingDown = false;
		this.#steps = 0;
	};
}

/** Lets timers and input of the process have their turn. */
export function yieldToEventLoop(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}
