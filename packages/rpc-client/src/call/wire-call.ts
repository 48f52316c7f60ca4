import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	errorCode,
	type Fields,
	type Http2ClientStream,
	type ResponseHandler,
} from "@plinth/http2";
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
	begun(header: Fields): void;
	received(chunk: Buffer): void;
	/** All bytes have arrived, and the status is OK. */
	completed(trailer: Fields): void;
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
 * - The session counts a stream from `open` until its last event, which always comes.
 * - `#held` is the credit of bytes that arrived while the call was paused: it is returned when the call goes on.
 */
export class WireCall implements AbortObserver, ResponseHandler {
	readonly #environment: CallEnvironment;
	readonly #method: DescMethod;
	readonly #request: CallRequest;
	readonly #reader: CallReader;
	#deadline: Deadline | undefined;
	#session: Session | undefined;
	#stream: Http2ClientStream | undefined;
	#header: Fields = [];
	#isPaused = false;
	#held = 0;
	#drained: PromiseWithResolvers<void> | undefined;
	#whenStreamClosed: (() => void) | undefined;
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
	start(send: (stream: Http2ClientStream) => void): void {
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
		this.#stream?.reset(errorCode.cancel);
		return true;
	}

	/** Stops reading: the server receives no more flow control credit. What it has sent before still arrives. */
	pause(): void {
		this.#isPaused = true;
	}

	resume(): void {
		this.#isPaused = false;
		const held = this.#held;
		this.#held = 0;
		this.#stream?.consume(held);
	}

	drained(): Promise<void> {
		this.#drained ??= Promise.withResolvers();
		return this.#drained.promise;
	}

	onStreamClosed(closed: () => void): void {
		this.#whenStreamClosed = closed;
	}

	aborted(signal: AbortSignal): void {
		this.fail(canceledBy(signal.reason));
	}

	async #openWhenReady(send: (stream: Http2ClientStream) => void): Promise<void> {
		try {
			const session = await this.#environment.connection.ready();
			if (this.#isOpen) {
				this.#open(session, send);
			}
		} catch (thrown) {
			this.#failRemotely(ConnectError.from(thrown, Code.Unavailable));
		}
	}

	#open(session: Session, send: (stream: Http2ClientStream) => void): void {
		let stream: Http2ClientStream;
		try {
			stream = session.open(this.#environment.head.of(this.#method, this.#request), this);
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

	// ── The events of the stream ──

	onHead(status: number, header: Fields): void {
		this.#session?.arrived();
		if (!this.#isOpen) {
			return;
		}
		this.#header = header;
		const error = responseError(status, header);
		if (error === undefined) {
			this.#reader.begun(header);
		} else {
			this.#failRemotely(error);
			this.#stream?.reset(errorCode.cancel);
		}
	}

	onData(chunk: Buffer): void {
		this.#session?.arrived();
		if (!this.#isOpen) {
			return;
		}
		try {
			this.#reader.received(chunk);
		} catch (thrown) {
			this.fail(ConnectError.from(thrown, Code.Internal));
			return;
		}
		if (this.#isPaused) {
			this.#held += chunk.length;
		} else {
			this.#stream?.consume(chunk.length);
		}
	}

	/** The server has ended the call by its status. */
	onEnd(trailer: Fields): void {
		this.#session?.arrived();
		const error = statusError(trailer, this.#header);
		if (error !== undefined) {
			this.#failRemotely(error);
		} else if (!hasStatus(trailer) && !hasStatus(this.#header)) {
			this.#failRemotely(resetError(errorCode.noError));
		} else if (this.#close()) {
			this.#reader.completed(trailer);
		}
		if (this.#stream?.isLocalEnded === false) {
			// The server reads no further: what is not sent yet would wait for its flow control credit.
			this.#stream.reset(errorCode.cancel);
		}
	}

	onDrain(): void {
		this.#drained?.resolve();
		this.#drained = undefined;
	}

	onFinish(): void {
		this.#streamClosed();
	}

	onReset(code: number): void {
		this.#streamClosed();
		// The first error of a process loads much code of Node.js: none is created for a call that has ended.
		if (this.#isOpen) {
			this.#failRemotely(this.#session?.failure ?? resetError(code));
		}
	}

	#streamClosed(): void {
		this.#session?.closed();
		this.onDrain();
		this.#whenStreamClosed?.();
	}
}
