import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * The HTTP/1.1 calls in progress. While a listener closes, the connection of each call ends after the response.
 *
 * The head of a response can inform the client of that, with `connection: close`. A client that was not informed may
 * send its next call on the same connection. Such a connection therefore _lingers_: for a while, it stays open and
 * serves further calls.
 */
export class Http1Calls {
	/** The response of each call, and its request. */
	readonly #calls = new Map<ServerResponse, IncomingMessage>();
	/** Open connections that have had a call. */
	readonly #connections = new Set<Socket>();
	/** Whether `close` was called. */
	#closing = false;
	/** Whether connections linger: from `close` to `stopLingering`. */
	#lingering = false;

	/** Adds a call. It is removed when its response is complete or its connection has closed. */
	add(request: IncomingMessage, response: ServerResponse): void {
		const { socket } = request;
		if (!this.#connections.has(socket)) {
			this.#connections.add(socket);
			socket.once("close", () => this.#connections.delete(socket));
		}
		this.#calls.set(response, request);
		response.once("close", () => this.#calls.delete(response));
	}

	/**
	 * Must be called before the head of a response is sent. After `close`, it informs the client that the connection
	 * ends, but only if the request has arrived completely. With `connection: close`, Node closes the connection right
	 * after the response, and a client that is still sending its request would fail before it reads the response.
	 */
	beforeHead(request: IncomingMessage, response: ServerResponse): void {
		if (this.#closing && request.complete) {
			response.setHeader("connection", "close");
		} else if (this.#closing) {
			this.#endConnectionAfter(request, response);
		}
	}

	/**
	 * From now on, ends connections after their current call. Connections whose clients were not informed linger until
	 * `stopLingering`.
	 */
	close(): void {
		this.#closing = true;
		this.#lingering = true;
		for (const [response, request] of this.#calls) {
			if (response.headersSent) {
				this.#endConnectionAfter(request, response);
			}
		}
	}

	/**
	 * From now on, ends all connections after their current call, whether or not their clients were informed. Ends those
	 * without a call immediately: idle ones, and those whose client still sends a request that has its response, or the
	 * head of the next one.
	 */
	stopLingering(): void {
		this.#lingering = false;
		const busy = new Set([...this.#calls.values()].map(({ socket }) => socket));
		for (const socket of this.#connections) {
			if (!busy.has(socket)) {
				socket.destroySoon();
			}
		}
	}

	/** Ends the connection of a client that was not informed, unless connections linger when the response is complete. */
	#endConnectionAfter(request: IncomingMessage, response: ServerResponse): void {
		response.once("finish", () => {
			if (!this.#lingering) {
				request.socket.destroySoon();
			}
		});
	}
}
