import type { TurnTaker } from "../limits/event-loop-turns.ts";

/** What calls and the bytes that wait to be sent count for: a subject, or a connection. */
export interface Holder {
	/** Calls in flight that are no streams. */
	calls: number;
	/** Bytes of responses that wait for their clients. */
	pendingBytes: number;
}

/** Counts what happens within a second. */
class PerSecond {
	#count = 0;
	#startMs = Number.NEGATIVE_INFINITY;

	/** Once more. Returns how often in this second. */
	take(nowMs: number): number {
		if (nowMs - this.#startMs >= 1_000) {
			this.#startMs = nowMs;
			this.#count = 0;
		}
		this.#count += 1;
		return this.#count;
	}
}

/** A connection with requests, as limits see it. */
export class Connection implements Holder {
	calls = 0;
	pendingBytes = 0;
	healthWatches = 0;
	/** Of requests that were refused because too many wait. */
	readonly refusals = new PerSecond();
	/** What it is known as to turns, which may remember it longer than it is open. */
	readonly turnKey = {};
	/** Whose calls have been let in; `gateways` where they were of several. */
	caller: TurnTaker["caller"] | undefined;
	/** Its exchanges that are not closed. */
	readonly exchanges = new Set<{ closed(): void }>();
	/** Checks that the client still reads; `undefined` over HTTP/1.1, where a stalled connection is cut. */
	readonly probe: (() => void) | undefined;

	constructor(probe: (() => void) | undefined) {
		this.probe = probe;
	}
}
