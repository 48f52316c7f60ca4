import { constants } from "node:http2";
import type { Fields } from "@plinth/forwarding";
import { Direction } from "./direction.ts";
import type { Faults } from "./faults.ts";

/** The head of a request. */
export interface RequestHead {
	readonly method: string;
	readonly target: string;
	readonly headers: Fields;
}

/** What a caller is told. Nothing follows after the end, a reset or a loss. */
export interface Caller {
	responded(status: number, headers: Fields): void;
	received(bytes: Uint8Array): void;
	ended(trailers: Fields): void;
	wasReset(code: number): void;
	/** The connection was lost. What the other side does is not known. */
	lost(): void;
}

/** What the called side is told. */
export interface Callee {
	received(bytes: Uint8Array): void;
	/** The request is complete. */
	ended(): void;
	/** The caller has reset the call, or is gone. */
	gone(): void;
}

type RequestFrame =
	| { readonly kind: "head" }
	| { readonly kind: "data"; readonly bytes: Uint8Array }
	| { readonly kind: "end" }
	| { readonly kind: "reset" };

type ResponseFrame =
	| { readonly kind: "head"; readonly status: number; readonly headers: Fields }
	| { readonly kind: "data"; readonly bytes: Uint8Array }
	| { readonly kind: "end"; readonly trailers: Fields }
	| { readonly kind: "reset"; readonly code: number };

/** What the connection of an exchange is told. */
export interface ExchangeEvents {
	/** The head of the request has arrived. */
	arrived(exchange: Exchange): void;
	/** The caller needs the connection no longer. */
	closed(exchange: Exchange): void;
	/** The connection breaks while it carries this exchange. */
	broken(): void;
}

/** How often a connection breaks, for each part that arrives. */
const breaks = 0.02;

/** How long the called side may not learn that its connection was lost, in milliseconds. */
const halfOpenMs = 3_000;

/**
 * A request and its response over a connection of the simulated network, as two processes see it:
 *
 * ```
 *   caller ── data, end, reset ──▶ callee         each in order, with delays, in chunks of any size
 *          ◀── head, data, end, reset ──
 *          ◀── lost ── (connection) ── gone ──▶   at different times
 * ```
 */
export class Exchange {
	readonly head: RequestHead;
	caller: Caller | undefined;
	callee: Callee | undefined;
	readonly #faults: Faults;
	readonly #events: ExchangeEvents;
	readonly #request: Direction<RequestFrame>;
	readonly #response: Direction<ResponseFrame>;
	#isLost = false;

	constructor(head: RequestHead, faults: Faults, events: ExchangeEvents) {
		this.head = head;
		this.#faults = faults;
		this.#events = events;
		this.#request = new Direction(faults, (frame) => this.#requested(frame));
		this.#response = new Direction(faults, (frame) => this.#responded(frame));
		void this.#request.send({ kind: "head" });
	}

	/** Sends a part of the request. */
	send(bytes: Uint8Array): Promise<void> | undefined {
		return this.#isLost ? undefined : this.#inParts(bytes, (part) => this.#request.send(part));
	}

	/** Completes the request. */
	finish(): void {
		if (!this.#isLost) {
			void this.#request.send({ kind: "end" });
		}
	}

	/** Ends the call from the side of the caller, which is told nothing more. */
	cancel(): void {
		this.caller = undefined;
		this.#response.cut();
		if (!this.#isLost) {
			void this.#request.send({ kind: "reset" });
		}
		this.#events.closed(this);
	}

	/** The caller takes no more of the response for now. */
	pause(): void {
		this.#response.pause();
	}

	resume(): void {
		this.#response.resume();
	}

	respond(status: number, headers: Fields): void {
		void this.#response.send({ kind: "head", status, headers });
	}

	/** Sends a part of the response. */
	write(bytes: Uint8Array): Promise<void> | undefined {
		return this.#inParts(bytes, (part) => this.#response.send(part));
	}

	/** Completes the response. */
	end(trailers: Fields): void {
		this.callee = undefined;
		void this.#response.send({ kind: "end", trailers });
	}

	/** Ends the call from the called side. */
	reset(code: number = constants.NGHTTP2_INTERNAL_ERROR): void {
		this.callee = undefined;
		void this.#response.send({ kind: "reset", code });
	}

	/**
	 * The connection is lost. What the caller has sent may still arrive, and the called side may learn of it much later.
	 *
	 * @param isCalleeDead - whether the called process no longer runs.
	 */
	lose(isCalleeDead: boolean): void {
		this.#isLost = true;
		this.#response.cut();
		const { caller } = this;
		this.caller = undefined;
		caller?.lost();
		const gone = () => {
			this.#request.cut();
			this.callee?.gone();
			this.callee = undefined;
		};
		if (isCalleeDead || this.#faults.happens(0.5)) {
			gone();
		} else {
			void this.#faults.wait(halfOpenMs).then(gone);
		}
	}

	/** Sends bytes in one or two parts. */
	#inParts(
		bytes: Uint8Array,
		send: (part: {
			readonly kind: "data";
			readonly bytes: Uint8Array;
		}) => Promise<void> | undefined,
	): Promise<void> | undefined {
		const at = this.#faults.happens(0.5) ? this.#faults.below(bytes.length) : 0;
		if (at > 0) {
			void send({ kind: "data", bytes: bytes.slice(0, at) });
		}
		return send({ kind: "data", bytes: bytes.slice(at) });
	}

	#mayBreak(): void {
		if (this.#faults.strikes(breaks)) {
			this.#events.broken();
		}
	}

	#requested(frame: RequestFrame): void {
		this.#mayBreak();
		switch (frame.kind) {
			case "head":
				this.#events.arrived(this);
				break;
			case "data":
				this.callee?.received(frame.bytes);
				break;
			case "end":
				this.callee?.ended();
				break;
			case "reset": {
				const { callee } = this;
				this.callee = undefined;
				callee?.gone();
			}
		}
	}

	#responded(frame: ResponseFrame): void {
		const { caller } = this;
		switch (frame.kind) {
			case "head":
				caller?.responded(frame.status, frame.headers);
				break;
			case "data":
				caller?.received(frame.bytes);
				this.#mayBreak();
				break;
			case "end":
				this.caller = undefined;
				caller?.ended(frame.trailers);
				this.#events.closed(this);
				break;
			case "reset":
				this.caller = undefined;
				caller?.wasReset(frame.code);
				this.#events.closed(this);
		}
	}
}
