import { type BackoffPolicy, backoffDelayMs, type Clock, type Random } from "@plinth/runtime";

const pauses: BackoffPolicy = { baseMs: 50, maxMs: 2_000 };

/** A stream that has lasted so long did not fail because its server could not continue the watch, in milliseconds. */
const lastingMs = 1_000;

/**
 * How a stream has failed: it was cut off; the server has refused to continue the watch, or one watch of the set; or the
 * same watch of the set was refused again, and has sent nothing in between.
 */
export type StreamFailure = "cut" | "refused" | "refused-again";

/**
 * The pauses between the attempts to continue a watch. The first attempt begins at once, unless the stream that was lost had
 * just begun, so that servers which fail again and again are not called without a pause.
 */
export class MovePauses {
	readonly #clock: Clock;
	readonly #random: Random;
	readonly #limitMs: number;
	#begunAtMs: number;
	/** When the server has begun to respond. */
	#respondedAtMs: number | undefined;
	/** When the watch was cut off. */
	#cutAtMs: number | undefined;
	#failures = 0;

	/** @param limitMs - how long attempts are made. */
	constructor(clock: Clock, random: Random, limitMs: number) {
		this.#clock = clock;
		this.#random = random;
		this.#limitMs = limitMs;
		this.#begunAtMs = clock.monotonic();
	}

	/** A stream begins. */
	begun(): void {
		this.#begunAtMs = this.#clock.monotonic();
		this.#respondedAtMs = undefined;
	}

	/** The server has begun to respond. */
	responded(): void {
		this.#respondedAtMs = this.#clock.monotonic();
	}

	/** Something has arrived on the stream: the watch goes on. */
	progressed(): void {
		this.#cutAtMs = undefined;
	}

	/** The stream has failed. Returns the pause before the next one, in milliseconds; `undefined` if the time is over. */
	failed(failure: StreamFailure): number | undefined {
		const nowMs = this.#clock.monotonic();
		const hasLasted = this.#hasLasted(failure, nowMs);
		if (hasLasted) {
			this.#failures = 0;
		}
		if (this.#cutAtMs === undefined || hasLasted) {
			this.#cutAtMs = nowMs;
		}
		if (nowMs - this.#cutAtMs >= this.#limitMs) {
			return undefined;
		}
		const isFirst = this.#failures === 0 && hasLasted;
		this.#failures += 1;
		return isFirst ? 0 : backoffDelayMs(pauses, this.#failures, this.#random);
	}

	/**
	 * Whether the stream was well before it failed. A server may take long to refuse a watch, and a quiet stream says nothing
	 * until its first event.
	 */
	#hasLasted(failure: StreamFailure, nowMs: number): boolean {
		const begunMs = nowMs - this.#begunAtMs;
		const respondedMs = nowMs - (this.#respondedAtMs ?? nowMs);
		return (
			begunMs >= this.#limitMs ||
			(failure === "cut" && begunMs >= lastingMs) ||
			(failure === "refused" && respondedMs >= lastingMs)
		);
	}
}
