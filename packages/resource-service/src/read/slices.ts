import type { Runtime } from "@plinth/runtime";

/** The number of items that a read handles in one turn: about a millisecond. */
export const sliceItems = 500;

/**
 * The slices of a long read, each a turn of the event loop: other work has its turns in between.
 *
 * ```
 * const slices = new Slices(runtime, call.signal);
 * for (const item of items) {
 *     if (slices.isOver()) {
 *         await slices.next();
 *     }
 * }
 * ```
 */
export class Slices {
	readonly #runtime: Pick<Runtime, "scheduler">;
	readonly #signal: AbortSignal;
	#left = sliceItems;

	/** @param signal - ends the read between two slices. */
	constructor(runtime: Pick<Runtime, "scheduler">, signal: AbortSignal) {
		this.#runtime = runtime;
		this.#signal = signal;
	}

	/** Counts an item, before it is handled. Returns whether the slice is over, and `next` must be awaited. */
	isOver(): boolean {
		this.#left -= 1;
		return this.#left < 0;
	}

	/**
	 * Waits for the next turn.
	 *
	 * @throws the signal's reason.
	 */
	async next(): Promise<void> {
		await this.#runtime.scheduler.turn();
		this.#signal.throwIfAborted();
		this.#left = sliceItems - 1;
	}
}
