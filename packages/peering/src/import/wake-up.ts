import { type Clock, linkedSignal, sleep, type Timer } from "@plinth/runtime";

/** The shortest time between two wake-ups by `wakeSoon`, in milliseconds. */
const intervalMs = 1_000;

/**
 * Lets one loop wait until there is something to do. A wait leaves nothing behind: neither reactions of a promise nor
 * listeners of a signal that live longer than it.
 */
export class WakeUp {
	readonly #clock: Clock;
	/** Whether the loop was woken since its last wait. */
	#isWoken = false;
	/** Ends the wait of the loop. */
	#pause: AbortController | undefined;
	/** For a wake-up that comes soon. */
	#timer: Timer | undefined;
	#lastMs = Number.NEGATIVE_INFINITY;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Ends the wait of the loop; the next one, if it does not wait. */
	wake(): void {
		this.#isWoken = true;
		this.#pause?.abort(new Error("there is something to do"));
	}

	/** As `wake`, but at once only if that was a second ago, and after that second otherwise: for what a peer can cause often. */
	wakeSoon(): void {
		if (this.#timer !== undefined) {
			return;
		}
		const waitMs = this.#lastMs + intervalMs - this.#clock.monotonic();
		if (waitMs <= 0) {
			this.#lastMs = this.#clock.monotonic();
			this.wake();
			return;
		}
		this.#timer = this.#clock.setTimer(waitMs, () => {
			this.#timer = undefined;
			this.#lastMs = this.#clock.monotonic();
			this.wake();
		});
	}

	/** Resolves after the delay, or when the loop is woken. Only one may wait. @throws the reason of the signal. */
	async wait(delayMs: number, signal: AbortSignal): Promise<void> {
		signal.throwIfAborted();
		if (!this.#isWoken) {
			const pause = new AbortController();
			this.#pause = pause;
			using linked = linkedSignal(signal, pause.signal);
			await sleep(this.#clock, delayMs, linked.signal).catch(() => signal.throwIfAborted());
			this.#pause = undefined;
		}
		this.#isWoken = false;
	}

	/** Cancels a wake-up that would come soon. */
	[Symbol.dispose](): void {
		this.#timer?.cancel();
		this.#timer = undefined;
	}
}
