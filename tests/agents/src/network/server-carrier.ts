import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import type { BodySink, Carrier, HeaderFields, RequestHead } from "@plinth/rpc-server";
import type { Callee, Exchange } from "./exchange.ts";

/** Is told what becomes of the response to a call. */
export interface CarrierEvents {
	/** Bytes of the response are sent. */
	sent(bytes: Uint8Array): void;
	/** The server has no more to do with the call. Called once. */
	ended(): void;
}

/** A call that has arrived at a server. */
export class ServerCarrier implements Carrier, Callee {
	readonly head: RequestHead;
	readonly values = createContextValues();
	onClose: ((reason: ConnectError) => void) | undefined;
	readonly #exchange: Exchange;
	readonly #events: CarrierEvents;
	readonly #request: (Uint8Array | "end")[] = [];
	#sink: BodySink | undefined;
	/** The head of the response, until it is sent. */
	#response: { readonly status: number; readonly headers: HeaderFields } | undefined;

	constructor(exchange: Exchange, events: CarrierEvents) {
		const { method, target, headers } = exchange.head;
		this.head = {
			...{ httpVersion: "2.0", method, target, url: `http://server${target}` },
			header: (name) => headers[name],
			headers: () => Object.entries(headers),
		};
		this.#exchange = exchange;
		this.#events = events;
		exchange.callee = this;
	}

	read(sink: BodySink): void {
		this.#sink = sink;
		for (const part of this.#request.splice(0)) {
			this.#pass(part);
		}
	}

	respond(status: number, headers: HeaderFields): void {
		this.#response = { status, headers };
	}

	write(data: Uint8Array): Promise<void> | undefined {
		this.#sendHead();
		this.#events.sent(data);
		return this.#exchange.write(data);
	}

	end(data: Uint8Array | undefined, trailers: HeaderFields = {}): void {
		this.#sendHead();
		if (data !== undefined && data.length > 0) {
			this.#events.sent(data);
			void this.#exchange.write(data);
		}
		this.#exchange.end(trailers);
		this.#events.ended();
	}

	cancel(): void {
		this.#exchange.reset();
		this.#events.ended();
	}

	received(bytes: Uint8Array): void {
		this.#pass(bytes);
	}

	ended(): void {
		this.#pass("end");
	}

	gone(): void {
		this.#sink = undefined;
		this.onClose?.(new ConnectError("the client is gone", Code.Canceled));
	}

	#pass(part: Uint8Array | "end"): void {
		if (this.#sink === undefined) {
			this.#request.push(part);
		} else if (part === "end") {
			this.#sink.end();
		} else if (!this.#sink.data(part)) {
			this.#sink = undefined;
		}
	}

	#sendHead(): void {
		if (this.#response !== undefined) {
			this.#exchange.respond(this.#response.status, this.#response.headers);
			this.#response = undefined;
		}
	}
}
