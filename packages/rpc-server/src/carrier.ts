import type { ConnectError, ContextValues } from "@connectrpc/connect";

/**
 * The HTTP request and response that carry a call, in any implementation of HTTP. A call uses it in this order:
 *
 * ```
 * head ──▶ read(sink) ──▶ respond(status, headers) ──▶ write(data)* ──▶ end(data, trailers)
 *                                                                  └──▶ cancel()
 * ```
 *
 * The carrier meters the request, counts unread bytes of the response, and enforces its own limits on both. Each call
 * ends with exactly one `end` or `cancel`, even if the client is gone.
 */
export interface Carrier {
	readonly head: RequestHead;
	/** Context values of the call. They are shared with the gate, interceptors and the implementation. */
	readonly values: ContextValues;
	/** Called at most once, when the client is gone or the server has cut it off. Set before the call begins. */
	onClose: ((reason: ConnectError) => void) | undefined;
	/** Reads the body of the request. Called at most once, and not for calls that are refused by their head. */
	read(sink: BodySink): void;
	/**
	 * Sets the head of the response. It is sent together with the first data, or with the end, and does not change
	 * after that.
	 */
	respond(status: number, headers: HeaderFields): void;
	/**
	 * Sends a part of the body. Returns a promise to wait for if the client must read before more is written.
	 *
	 * @throws ConnectError if the client is gone; the promise rejects with one, too.
	 */
	write(data: Uint8Array): Promise<void> | undefined;
	/** Sends the last part of the body and the trailers, if any. Does nothing if the client is gone. */
	end(data: Uint8Array | undefined, trailers: HeaderFields | undefined): void;
	/** Ends the call without completing its response, in a way that the client can detect. */
	cancel(): void;
}

/** Fields of a head or of trailers, with lower-case names. */
export type HeaderFields = Readonly<Record<string, string>>;

/** The head of a request. */
export interface RequestHead {
	/** As `1.1` or `2.0`. */
	readonly httpVersion: string;
	readonly method: string;
	/** The path and the query, as received. */
	readonly target: string;
	/** The absolute URL of the request. It is computed on access. */
	readonly url: string;
	/** The value of a header by its lower-case name; values of repeated headers are joined by commas. */
	header(name: string): string | undefined;
	/** All headers, with lower-case names, without the pseudo-headers of HTTP/2. */
	headers(): Iterable<readonly [name: string, value: string]>;
}

/** Receives the body of a request. */
export interface BodySink {
	/** A part of the body. Returns false if no more is needed; no more is passed then. */
	data(chunk: Uint8Array): boolean;
	/** The whole body has arrived. */
	end(): void;
	/** The body could not be read, or was refused. */
	fail(failure: unknown): void;
}
