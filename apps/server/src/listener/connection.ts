import type { TurnTaker } from "../limits/event-loop-turns.ts";
import type { Exchange } from "./exchange.ts";

/** What calls and the bytes that wait to be sent count for: a subject, or a connection. */
export interface Holder {
	/** Calls in flight that are no streams. */
	calls: number;
	/** Bytes of responses that wait for their clients. */
	pendingBytes: number;
}

/** A connection with requests, as limits see it. */
export class Connection implements Holder {
	calls = 0;
	pendingBytes = 0;
	healthWatches = 0;
	/** Whose call was let in last. */
	caller: TurnTaker["caller"] | undefined;
	/** Its exchanges that are not closed. */
	readonly exchanges = new Set<Exchange>();
	/** Checks that the client still reads; `undefined` over HTTP/1.1, where a stalled connection is cut. */
	readonly probe: (() => void) | undefined;

	constructor(probe: (() => void) | undefined) {
		this.probe = probe;
	}
}
