import type { ClientHttp2Stream, IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import { constants } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Deadline } from "@plinth/runtime";
import {
	type AbortObserver,
	type CallRequest,
	canceledBy,
	deadlineExceeded,
	observeAbort,
	unobserveAbort,
} from "@plinth/transport";
import type { Session } from "../session/session.ts";
import type { CallEnvironment } from "./call-environment.ts";
import { hasStatus, statusError } from "./grpc-status.ts";
import { responseError } from "./response-head.ts";
import { resetError } from "./stream-errors.ts";

/** Receives the events of a call. Only `received` may throw; its error fails the call. */
export interface CallReader {
	/** The response has begun: it is gRPC, and without an error so far. */
	begun(header: IncomingHttpHeaders): void;
	received(chunk: Buffer): void;
	/** All bytes have arrived, and the status is OK. */
	completed(trailer: IncomingHttpHeaders): void;
	/**
	 * The call has failed.
	 *
	 * @param isLocal - whether this side ended it, because of the caller's signal, the deadline or a malformed message.
	 */
	failed(error: ConnectError, isLocal: boolean): void;
}

/**
 * The lifecycle of one call: an HTTP/2 stream, and the events that may end it.
 *
 *   ended by                  the reader receives         the stream
 *   ───────────────────────   ─────────────────────────   ─────────────────
 *   end of the response       completed, or failed        closes by itself
 *   reset, lost session       failed                      has closed
 *   signal, deadline          failed (local)              is reset with CANCEL
 *   `leave`                   nothing                     is reset with CANCEL
 *
 * Invariants:
 *
 * - The reader is told exactly one of `completed` and `failed`, or nothing after `leave`.
 * - A call that has ended has no deadline and observes no signal.
 * - The session counts a stream from `open` until its `close` event, which always comes.
 */
export class WireCall implements AbortObserver {
	readonly #environment: CallEnvironment;
	readonly #method: DescMethod;
	readonly #request: CallRequest;
	readonly #reader: CallReader;
	#deadline: Deadline | undefined;
	#session: Session | undefined;
	#stream: ClientHttp2Stream | undefined;
	#header: IncomingHttpHeaders | undefined;
	#trailer: IncomingHttpHeaders | undefined;
	/** All bytes have arrived. */
	#hasEnded = false;
	#error: Error | undefined;
	#isOpen = true;

	constructor(
		environment: CallEnvironment,
		method: DescMethod,
		request: CallRequest,
		reader: CallReader,
	) {
		this.#environment = environment;
		this.#method = method;
		this.#request = request;
		this.#reader = reader;
	}

	get isOpen(): boolean {
		return this.#isOpen;
	}

	/** Makes the call. @param send - writes the request once the stream is open. */
	start(send: (stream: ClientHttp2Stream) => void): void {
		const { signal, deadlineMs } = this.#request;
		if (signal?.aborted) {
			this.fail(canceledBy(signal.reason));
			return;
		}
		if (signal !== undefined) {
			observeAbort(signal, this);
		}
		if (deadlineMs !== undefined) {
			this.#deadline = this.#environment.deadlines.set(deadlineMs, () =>
				this.fail(deadlineExceeded()),
			);
		}
		const session = this.#environment.connection.current;
		if (session === undefined) {
			void this.#openWhenReady(send);
		} else {
			this.#open(session, send);
		}
	}

	/** Fails the call, from this side. */
	fail(error: ConnectError): void {
		if (this.leave()) {
			this.#reader.failed(error, true);
		}
	}

	/** Ends the call without notifying the reader. Returns false if it has already ended. */
	leave(): boolean {
		if (!this.#close()) {
			return false;
		}
		this.#stream?.close(constants.NGHTTP2_CANCEL);
		// A stream that the server has closed stays open until its buffer has been read.
		this.#stream?.resume();
		return true;
	}

	/** Stops reading: the server receives no more flow control credit. */
	pause(): void {
		this.#stream?.pause();
	}

	resume(): void {
		this.#stream?.resume();
	}

	aborted(signal: AbortSignal): void {
		this.fail(canceledBy(signal.reason));
	}

	async #openWhenReady(send: (stream: ClientHttp2Stream) => void): Promise<void> {
		try {
			const session = await this.#environment.connection.ready();
			if (this.#isOpen) {
				this.#open(session, send);
			}
		} catch (thrown) {
			this.#failRemotely(ConnectError.from(thrown, Code.Unavailable));
		}
	}

	#open(session: Session, send: (stream: ClientHttp2Stream) => void): void {
		let stream: ClientHttp2Stream;
		try {
			stream = session.open(this.#environment.head.of(this.#method, this.#request));
		} catch (thrown) {
			if (session.isReady) {
				// A header is invalid.
				this.fail(ConnectError.from(thrown, Code.Internal));
			} else {
				// Nothing was sent: the session has just ended.
				void this.#openWhenReady(send);
			}
			return;
		}
		this.#session = session;
		this.#stream = stream;
		stream.on("response", this.#onResponse);
		stream.on("data", this.#onData);
		stream.on("trailers", this.#onTrailers);
		stream.on("end", this.#onEnd);
		stream.on("error", this.#onError);
		stream.on("close", this.#onClose);
		send(stream);
	}

	/** Returns false if the call has already ended. */
	#close(): boolean {
		if (!this.#isOpen) {
			return false;
		}
		this.#isOpen = false;
		this.#deadline?.cancel();
		if (this.#request.signal !== undefined) {
			unobserveAbort(this.#request.signal, this);
		}
		return true;
	}

	#failRemotely(error: ConnectError): void {
		if (this.#close()) {
			this.#reader.failed(error, false);
		}
	}

	/** The server has ended the call by its status. */
	#finish(): void {
		if (
			this.#stream !== undefined &&
			!(this.#stream.writableEnded && this.#stream.writableLength === 0)
		) {
			// The server reads no further: what is not sent yet would wait for its flow control credit.
			this.#stream.close(constants.NGHTTP2_CANCEL);
		}
		const header = this.#header ?? {};
		const trailer = this.#trailer ?? {};
		const error = statusError(trailer, header);
		if (error !== undefined) {
			this.#failRemotely(error);
		} else if (!hasStatus(trailer) && !hasStatus(header)) {
			this.#failRemotely(resetError(constants.NGHTTP2_NO_ERROR, undefined));
		} else if (this.#close()) {
			this.#reader.completed(trailer);
		}
	}

	readonly #onResponse = (header: IncomingHttpHeaders & IncomingHttpStatusHeader): void => {
		this.#session?.arrived();
		if (!this.#isOpen) {
			return;
		}
		this.#header = header;
		const error = responseError(header);
		if (error === undefined) {
			this.#reader.begun(header);
		} else {
			this.#failRemotely(error);
			this.#stream?.close(constants.NGHTTP2_CANCEL);
		}
	};

	readonly #onData = (chunk: Buffer): void => {
		this.#session?.arrived();
		if (!this.#isOpen) {
			return;
		}
		try {
			this.#reader.received(chunk);
		} catch (thrown) {
			this.fail(ConnectError.from(thrown, Code.Internal));
		}
	};

	readonly #onTrailers = (trailer: IncomingHttpHeaders): void => {
		this.#session?.arrived();
		this.#trailer = trailer;
		if (this.#hasEnded) {
			this.#finish();
		}
	};

	readonly #onEnd = (): void => {
		this.#hasEnded = true;
		const isStatusHere =
			this.#trailer !== undefined || (this.#header !== undefined && hasStatus(this.#header));
		// Trailers precede the end. If the request has not ended, the stream does not close by itself.
		if (isStatusHere || this.#stream?.closed === false) {
			this.#finish();
		}
	};

	readonly #onError = (error: Error): void => {
		this.#error = error;
	};

	readonly #onClose = (): void => {
		this.#session?.closed();
		if (!this.#isOpen) {
			return;
		}
		const status = this.#trailer && statusError(this.#trailer, this.#header);
		this.#failRemotely(
			status ??
				this.#session?.failureOf(this.#error) ??
				resetError(this.#stream?.rstCode ?? 0, this.#error),
		);
	};
}
