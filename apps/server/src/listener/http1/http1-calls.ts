import type { IncomingMessage, ServerResponse } from "node:http";

/** HTTP/1.1 calls in progress, and whether their connections end with them. */
export class Http1Calls {
	readonly #calls = new Map<ServerResponse, IncomingMessage>();
	#closing = false;
	/** Whether idle connections are left open while closing. */
	#lingering = false;

	/** A call begins. */
	add(request: IncomingMessage, response: ServerResponse): void {
		this.#calls.set(response, request);
		response.once("close", () => this.#calls.delete(response));
	}

	/**
	 * The head of a response is about to be sent. If its connection shall end, the client is told so, unless it may still
	 * be sending its request: Node would close the connection before the client could read the response.
	 */
	beforeHead(request: IncomingMessage, response: ServerResponse): void {
		if (this.#closing && request.complete) {
			response.setHeader("connection", "close");
		} else if (this.#closing) {
			this.#endUntoldConnectionAfter(request, response);
		}
	}

	/** Ends connections after their current call. Those whose client can't know this stay open until `stopLingering`. */
	close(): void {
		this.#closing = true;
		this.#lingering = true;
		for (const [response, request] of this.#calls) {
			if (response.headersSent) {
				this.#endUntoldConnectionAfter(request, response);
			}
		}
	}

	/** Leaves no idle connection open from now on. */
	stopLingering(): void {
		this.#lingering = false;
	}

	/** The client was not told that the connection ends, and may have sent another call. */
	#endUntoldConnectionAfter(request: IncomingMessage, response: ServerResponse): void {
		response.once("finish", () => {
			if (!this.#lingering) {
				request.socket.destroySoon();
			}
		});
	}
}
