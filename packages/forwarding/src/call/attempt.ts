import {
	type ClientHttp2Stream,
	constants,
	type IncomingHttpHeaders,
	type IncomingHttpStatusHeader,
} from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { Session } from "@plinth/rpc-client/session";
import type { Server } from "../servers/server.ts";
import type { Place } from "../servers/server-network.ts";

/** How a stream to a server ended early. */
export type EarlyEnd =
	/** The server has guaranteed that it did not process the call. */
	| { readonly kind: "excluded"; readonly reason: string }
	/** The connection was lost. What the server has done is not known. */
	| { readonly kind: "lost"; readonly reason: string }
	/** The server has reset the stream. */
	| { readonly kind: "reset"; readonly code: number };

/** Receives the events of an attempt: the head, chunks, and last either the end or an early end. */
export interface AttemptReader {
	responded(attempt: Attempt, headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void;
	/** Returns a promise if the next chunk must wait. */
	received(chunk: Buffer): Promise<void> | undefined;
	ended(trailers: IncomingHttpHeaders): void;
	endedEarly(attempt: Attempt, end: EarlyEnd): void;
}

/**
 * A call on a stream to one server. The place of the call on its connection is left when the stream has closed, which it
 * always does.
 *
 * Invariant: after `leave` and after the end the reader is told nothing.
 */
export class Attempt {
	readonly server: Server;
	readonly stream: ClientHttp2Stream;
	readonly #session: Session;
	readonly #place: Place;
	#reader: AttemptReader | undefined;
	#trailers: IncomingHttpHeaders | undefined;
	#hasEnded = false;
	#error: Error | undefined;

	constructor(
		server: Server,
		place: Place,
		session: Session,
		stream: ClientHttp2Stream,
		reader: AttemptReader,
	) {
		this.server = server;
		this.stream = stream;
		this.#place = place;
		this.#session = session;
		this.#reader = reader;
		stream.on("response", this.#onResponse);
		stream.on("data", this.#onData);
		stream.on("trailers", this.#onTrailers);
		stream.on("end", this.#onEnd);
		stream.on("error", this.#onError);
		stream.on("close", this.#onClose);
	}

	/** Ends the stream, unless it has ended. */
	leave(): void {
		this.#reader = undefined;
		if (!this.stream.closed) {
			this.stream.close(constants.NGHTTP2_CANCEL);
		}
		// A stream that the server has closed stays open until its buffer has been read.
		this.stream.resume();
	}

	readonly #onResponse = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void => {
		this.#session.arrived();
		this.#reader?.responded(this, headers);
	};

	readonly #onData = (chunk: Buffer): void => {
		this.#session.arrived();
		const waiting = this.#reader?.received(chunk);
		if (waiting !== undefined) {
			this.stream.pause();
			const resume = () => this.stream.resume();
			// If the client is gone, `leave` was called.
			waiting.then(resume, resume);
		}
	};

	readonly #onTrailers = (trailers: IncomingHttpHeaders): void => {
		this.#session.arrived();
		this.#trailers = trailers;
		if (this.#hasEnded) {
			this.#finish();
		}
	};

	readonly #onEnd = (): void => {
		this.#hasEnded = true;
		// A stream that has closed may have ended because it was reset, which `close` tells. While this side has not ended
		// the request, the stream does not close.
		if (this.#trailers !== undefined || !this.stream.closed) {
			this.#finish();
		}
	};

	readonly #onError = (error: Error): void => {
		this.#error = error;
	};

	readonly #onClose = (): void => {
		const { rstCode = constants.NGHTTP2_NO_ERROR } = this.stream;
		const isComplete = this.#hasEnded && rstCode === constants.NGHTTP2_NO_ERROR;
		// Before the place is left: the connections of a server that was removed are closed with its last call.
		const end = isComplete ? undefined : this.#earlyEnd(rstCode);
		this.#session.closed();
		this.#place.leave();
		if (end === undefined) {
			this.#finish();
			return;
		}
		const reader = this.#reader;
		this.#reader = undefined;
		reader?.endedEarly(this, end);
	};

	#finish(): void {
		const reader = this.#reader;
		this.#reader = undefined;
		reader?.ended(this.#trailers ?? {});
		this.leave();
	}

	#earlyEnd(code: number): EarlyEnd {
		const failure: ConnectError | undefined = this.#session.failureOf(this.#error);
		if (this.#session.hasExcluded(this.stream)) {
			const reason = failure?.rawMessage ?? `${this.server.address} has refused the stream`;
			return { kind: "excluded", reason };
		}
		return failure === undefined
			? { kind: "reset", code }
			: { kind: "lost", reason: failure.rawMessage };
	}
}
