import type { Fields, InboundCall, InboundListener } from "@plinth/forwarding";
import type { Exchange } from "../listener/exchange.ts";
import type { HttpRequest, HttpResponse } from "../listener/request-handler.ts";

/** A call that arrived at a listener. Its exchange counts unread bytes, and ends it if the client is too slow. */
export class ExchangeCall implements InboundCall {
	readonly #exchange: Exchange;
	readonly #request: HttpRequest;
	readonly #response: HttpResponse;
	readonly #isOwn: boolean;

	/** @param isOwn - whether the agent itself calls, so that no client is named. */
	constructor(exchange: Exchange, request: HttpRequest, response: HttpResponse, isOwn: boolean) {
		this.#isOwn = isOwn;
		this.#exchange = exchange;
		this.#request = request;
		this.#response = response;
	}

	get method(): string {
		return this.#request.method;
	}

	get target(): string {
		return this.#request.target;
	}

	get authority(): string | undefined {
		return this.#request.authority;
	}

	get clientAddress(): string {
		return this.#isOwn ? "" : this.#request.connection.remoteAddress;
	}

	header(name: string): string | undefined {
		return this.#request.header(name);
	}

	headers(): Iterable<readonly [string, string]> {
		return this.#request.headers();
	}

	take(): Uint8Array | "end" | undefined {
		return this.#exchange.body.take();
	}

	wait(wake: () => void): void {
		this.#exchange.body.wait(wake);
	}

	respond(status: number, fields: Fields, mayHaveTrailers: boolean): void {
		if (!this.#exchange.isClosed) {
			this.#response.writeHead(status, fields, mayHaveTrailers);
		}
	}

	write(chunk: Uint8Array): Promise<void> | undefined {
		return this.#exchange.write(chunk);
	}

	end(trailers?: Fields): void {
		if (trailers !== undefined && !this.#exchange.isClosed) {
			this.#response.addTrailers(trailers);
		}
		this.#exchange.end();
		this.#exchange.settled();
	}

	reset(code: number): void {
		// Settled first: the call is not told that its client is gone.
		this.#exchange.settled();
		this.#exchange.destroy(code);
	}

	listen(listener: InboundListener): void {
		this.#exchange.carrier = {
			clientIsGone: () => {
				listener.clientIsGone();
				this.#exchange.settled();
			},
		};
	}
}
