import type { HandlerContext } from "@connectrpc/connect";
import type { Runtime } from "@plinth/runtime";

/** The number of items that a read handles in one turn: about a millisecond. */
export const sliceItems = 2_000;

/**
 * The slices of a long read, each a turn of the event loop: other work has its turns in between.
 *
 * ```
 * const slices = new Slices(runtime, call);
 * for (const item of items) {
 *     if (slices.isOver()) {
 *         await slices.next();
 *     }
 * }
 * ```
 */
export class Slices {
	readonly #runtime: Pick<Runtime, "scheduler">;
	readonly #call: Pick<HandlerContext, "signal">;
	readonly #onPause: (() => void) | undefined;
	#left = sliceItems;

	/**
	 * @param call - ends the read between two slices. Its signal is made when it is read, which most reads need not do.
	 * @param onPause - called before each wait.
	 */
	constructor(
		runtime: Pick<Runtime, "scheduler">,
		call: Pick<HandlerContext, "signal">,
		onPause?: () => void,
	) {
		this.#runtime = runtime;
		this.#call = call;
		this.#onPause = onPause;
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
		this.#onPause?.();
		await this.#runtime.scheduler.turn();
		this.#call.signal.throwIfAborted();
		this.#left = sliceItems - 1;
	}
}
