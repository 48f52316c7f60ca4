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
		if (this.#closing) {
			this.#endConnectionAfter(request, response);
		}
	}

	/** Ends connections after their current call. Those whose client can't know this stay open until `stopLingering`. */
	close(): void {
		this.#closing = true;
		this.#lingering = true;
		for (const [response, request] of this.#calls) {
			this.#endConnectionAfter(request, response);
		}
	}

	/** Leaves no idle connection open from now on. */
	stopLingering(): void {
		this.#lingering = false;
	}

	#endConnectionAfter(request: IncomingMessage, response: ServerResponse): void {
		if (response.headersSent) {
			// The client was not told that the connection ends, and may have sent another call.
			response.once("finish", () => {
				if (!this.#lingering) {
					request.socket.destroySoon();
				}
			});
		} else {
			response.setHeader("connection", "close");
		}
	}
}
