import type { Clock } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";

/** The share of the time left that an attempt gets while another server may respond instead. */
const attemptShare = 1 / 3;

/** How long a deployment counts as slow after a late response. */
const slowMs = 60_000;

/**
 * How long the attempts of the calls to one deployment may take. A server that hangs, or is cut off from the network,
 * refuses nothing: an attempt there must end early enough for another server to respond.
 *
 *     |── server a ──|──────── server b ────────|
 *     0            1/3                      deadline
 *
 * A slow deployment looks the same at first, and there a second attempt only adds load. So once a response has come
 * later than a shortened attempt would have waited for it, attempts get the whole deadline for a minute.
 */
export class AttemptTimeouts {
	readonly #clock: Pick<Clock, "monotonic">;
	#slowUntilMs = Number.NEGATIVE_INFINITY;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
	}

	/**
	 * The timeout of the next attempt of a call.
	 *
	 * @param leftMs - the time left until the deadline of the call.
	 * @param hasOther - whether another server that responded last time could be called afterwards.
	 */
	next(leftMs: number, hasOther: boolean): number {
		const isWhole = !hasOther || this.#clock.monotonic() < this.#slowUntilMs;
		return isWhole || isPlanted("give one attempt the whole deadline") ? leftMs : shortened(leftMs);
	}

	/** A server has responded to an attempt that began when `leftMs` were left. */
	responded(leftMs: number, tookMs: number): void {
		if (tookMs > shortened(leftMs)) {
			this.#slowUntilMs = this.#clock.monotonic() + slowMs;
		}
	}
}

function shortened(leftMs: number): number {
	return Math.ceil(leftMs * attemptShare);
}
