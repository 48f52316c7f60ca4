import type { HeaderFields, RequestHead } from "@plinth/rpc-server";

/** A connection of any HTTP implementation. */
export interface HttpConnection {
	/** Whether it carries several requests at once, each of which can be reset (HTTP/2). */
	readonly isMultiplexed: boolean;
	readonly isEncrypted: boolean;
	/** The IP address of the other side; empty if it is not known. */
	readonly remoteAddress: string;
	/** Calls `listener` once, when the connection has closed. */
	onceClosed(listener: () => void): void;
	/**
	 * Sends a PING, and calls `done` once: when the client has acknowledged it, or when the connection has closed. If it can't
	 * be sent because the connection is ending, only the latter remains. Does nothing over HTTP/1.1.
	 */
	ping(done: () => void): void;
	/** Closes the connection, even if its client reads nothing; over HTTP/2, with a GOAWAY of this code. */
	destroy(code: number): void;
}

/** Receives notifications about the body of a request. */
export interface BodyListener {
	/** More can be read, or all was read, or the rest is lost. */
	bodyChanged(): void;
}

/** A request of any HTTP implementation: its head, and its body, which is read on demand. */
export interface HttpRequest extends RequestHead {
	readonly connection: HttpConnection;
	/** The client to which limits on connections are applied, if an agent has forwarded its request. */
	client?: HttpConnection;
	/** Whether it has arrived on the port for agents, with a credential. */
	isOfAgent?: boolean;
	/** The host to which the request was sent: `:authority`, or else Host. */
	readonly authority: string | undefined;
	/** Whether the request has at most one Host, which does not differ from `:authority`. */
	readonly hasOneHost: boolean;
	/** Whether the client is gone, or has reset the request. */
	readonly isGone: boolean;
	/** Whether the whole body has arrived, read or not. Not known over HTTP/1.1. */
	readonly hasArrived: boolean;
	/** Whether the whole body was read. */
	readonly isRead: boolean;
	/** Whether the rest of the body can't be read any more. */
	readonly isLost: boolean;
	/** The next part of the body, if it has arrived. Over HTTP/2, the client may send as much again. */
	read(): Uint8Array | undefined;
	/** Drops the rest of the body. */
	discard(): void;
	/** Sets the listener, or removes it. */
	listenToBody(listener: BodyListener | undefined): void;
}

/** Receives notifications about what becomes of a response. */
export interface ResponseListener {
	/** Bytes that were passed to `write` have left the process. */
	sent(byteCount: number): void;
	/** The whole response has left the process. The request may not have ended. */
	finished(): void;
	/** The request and the response have ended, or their client is gone. No other notification follows. */
	closed(): void;
}

/** The response to a request. What is written after the client is gone is dropped. */
export interface HttpResponse {
	readonly headersSent: boolean;
	/** Adds a header to those that `writeHead` sends. */
	setHeader(name: string, value: string): void;
	/**
	 * Sends the head, unless it was sent.
	 *
	 * @param mayHaveTrailers - false if no trailers follow, so that the last data ends the response.
	 * @throws Error if a name or a value is invalid; then nothing was sent.
	 */
	writeHead(status: number, headers?: HeaderFields, mayHaveTrailers?: boolean): void;
	/** Sends data, after the head. Returns whether more may be written before this data was sent. */
	write(data: Uint8Array): boolean;
	/** Adds trailers, which are sent with the end. Invalid ones make `end` reset the request. */
	addTrailers(trailers: HeaderFields): void;
	/** Sends the last data, and the head if it was not sent. */
	end(data?: Uint8Array): void;
	/** Ends the request and the response with an error code of HTTP/2; over HTTP/1.1, closes the connection. */
	reset(code: number): void;
	/** Sets the listener, or removes it. */
	listen(listener: ResponseListener | undefined): void;
	/** Calls `listener` once: when the request and the response have ended, or when their client is gone. */
	onceClosed(listener: () => void): void;
}

/** Handles one HTTP request of any implementation. Must not throw. */
export type RequestHandler = (request: HttpRequest, response: HttpResponse) => void;

/** A request's path, without its query. */
export function pathOf({ target }: Pick<HttpRequest, "target">): string {
	const end = target.indexOf("?");
	return end === -1 ? target : target.slice(0, end);
}

/** A request's headers, without the pseudo-headers of HTTP/2. */
export function headersOf(request: Pick<HttpRequest, "headers">): Headers {
	const headers = new Headers();
	for (const [name, value] of request.headers()) {
		headers.set(name, value);
	}
	return headers;
}

/** Sends a response of text. Adds a line break if the text does not end with one. */
export function sendText(
	response: HttpResponse,
	status: number,
	text: string,
	contentType = "text/plain; charset=utf-8",
): void {
	const body = Buffer.from(text.endsWith("\n") ? text : `${text}\n`);
	response.writeHead(status, {
		"content-type": contentType,
		"content-length": String(body.byteLength),
		"cache-control": "no-store",
	});
	response.end(body);
}
