import type { TurnTaker } from "../limits/event-loop-turns.ts";

/** The usage of a subject or a connection, which limits are applied to. */
export interface Usage {
	/** Calls in flight, excluding streams. */
	calls: number;
	/** Response bytes that clients have not read. */
	pendingBytes: number;
}

/** Counts events per second. */
class PerSecond {
	#count = 0;
	#startMs = Number.NEGATIVE_INFINITY;

	/** Counts one event. Returns the number of events in this second. */
	add(nowMs: number): number {
		if (nowMs - this.#startMs >= 1_000) {
			this.#startMs = nowMs;
			this.#count = 0;
		}
		this.#count += 1;
		return this.#count;
	}
}

/** The state of a connection that limits are applied to. */
export class Connection implements Usage {
	calls = 0;
	pendingBytes = 0;
	healthWatches = 0;
	/** Requests that were refused because too many were waiting. */
	readonly refusals = new PerSecond();
	/** Identifies the connection for turns on the event loop, which may remember it after it was closed. */
	readonly turnKey = {};
	/** The caller whose calls were admitted; `sharedConnections` if there were several. */
	caller: TurnTaker["caller"] | undefined;
	/**
	 * Over HTTP/1.1, its exchanges that are not closed: Node reports the end of the connection only to the first of several
	 * pipelined responses.
	 */
	readonly pipelined: Set<{ closed(): void }> | undefined;

	/** @param isMultiplexed - whether it is one of HTTP/2. */
	constructor(isMultiplexed: boolean) {
		this.pipelined = isMultiplexed ? undefined : new Set();
	}
}
