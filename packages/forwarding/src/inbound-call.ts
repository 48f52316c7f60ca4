/** Header or trailer fields: values of repeated fields are joined by commas. */
export type Fields = Readonly<Record<string, string>>;

/** Receives the end of an inbound call that did not end by its response. */
export interface InboundListener {
	/** The client has reset the call or is gone. No method of the call has an effect after this. */
	clientIsGone(): void;
}

/** A call as a listener received it: its head, its body in chunks, and the way back. */
export interface InboundCall {
	readonly method: string;
	/** The path, with its query. */
	readonly target: string;
	/** The host that the client has named; `undefined` if none. */
	readonly authority: string | undefined;
	/** The IP address of the client; empty if it is not known, or if the agent itself calls. */
	readonly clientAddress: string;
	/** The value of a header, by its name in lower case. */
	header(name: string): string | undefined;
	/** All headers, by their names in lower case, without pseudo-headers. */
	headers(): Iterable<readonly [string, string]>;

	/**
	 * The next chunk of the body if it has arrived; `undefined` if not. What is not taken stays with the client, but for
	 * what fits into the buffers of HTTP.
	 *
	 * @throws Error if the rest of the body can't be read.
	 */
	take(): Uint8Array | "end" | undefined;
	/** Calls `wake` once, when `take` may have another result. */
	wait(wake: () => void): void;

	/** Sends the head of the response. @throws Error if a field is not valid; then nothing was sent. */
	respond(status: number, fields: Fields, mayHaveTrailers: boolean): void;
	/**
	 * Sends a chunk of the body. Returns a promise if the client must read before more is sent. A chunk of more than 64 KiB
	 * is not complete before that.
	 *
	 * @throws Error if the call has ended; the promise rejects if it ends first.
	 */
	write(chunk: Uint8Array): Promise<void> | undefined;
	/** Completes the response. */
	end(trailers?: Fields): void;
	/** Ends the call with an error code of HTTP/2; over HTTP/1.1, closes the connection. */
	reset(code: number): void;
	listen(listener: InboundListener): void;
}
