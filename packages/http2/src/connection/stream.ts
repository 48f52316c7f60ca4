import type { Fields, Http2Limits, ResetOrigin, StreamHandler } from "../http2.ts";
import { ReceiveWindow } from "./receive-window.ts";

/** What a stream needs from its connection. */
export interface StreamHost {
	readonly limits: Http2Limits;
	/** @throws Error if the fields of a response, or of trailers (status 0), would be malformed. */
	checkFields(status: number, fields: Fields): void;
	/** All that was written is in the output: the stream gets a notice when the socket has taken it. */
	noteDrained(stream: Stream): void;
	/** Sends what the stream wants to send, at once or later. Returns false if the stream was reset instead. */
	send(stream: Stream, bytes: Uint8Array | undefined): boolean;
	/** Returns credit that a handler has consumed. */
	returnCredit(stream: Stream, byteCount: number): void;
	/** Sends RST_STREAM and closes the stream. */
	resetStream(stream: Stream, code: number): void;
	handlerFailed(stream: Stream, error: unknown): void;
}

type Ended = { readonly code: number; readonly origin: ResetOrigin };

const noBytes: Uint8Array = new Uint8Array(0);

/**
 * A stream that the client has opened, as either side sees it, RFC 9113, section 5.1. There are no pushed streams, which
 * leaves these states, kept as two flags:
 *
 *                       HEADERS
 *              idle ──────────────▶ open
 *                                    │
 *           END_STREAM received ┌────┴────┐ END_STREAM sent
 *                 isRemoteEnded ▼         ▼ isLocalEnded
 *            half-closed (remote)         half-closed (local)
 *                               └────┬────┘
 *                    isClosed        ▼
 *          RST_STREAM ───────────▶ closed
 *
 * Invariants: `unsentBytes` is the number of bytes in `#queue` after `#queueOffset`; a closed stream has none, and
 * is in no list of the connection but that of notices.
 */
export abstract class Stream {
	/** 0 as long as it has none. */
	id: number;
	/** The number of bytes that the peer has announced for the body; -1 if it has not. */
	contentLength: number;
	readonly receiveWindow: ReceiveWindow;
	/** The bytes that the peer accepts; negative after it has lowered its initial window. */
	sendWindow: number;
	isRemoteEnded = false;
	isLocalEnded = false;
	isClosed = false;
	/** Whether the stream is in the connection's list of those that want to send. */
	isReady = false;
	/** Whether `write` has returned false, and `onDrain` has not followed. */
	needsDrain = false;
	/** Whether the stream is in the list of those that get the notice. */
	isDrained = false;
	receivedBytes = 0;
	unsentBytes = 0;
	sentBytes = 0;
	/** The number of bytes sent when progress was last checked. */
	sentBytesBefore = -1;
	/** The window that the stream began with, adjusted when the peer changes its setting. */
	initialSendWindow: number;
	trailers: Fields | undefined;
	#handler: StreamHandler | undefined;
	#ended: Ended | "finished" | undefined;
	#queue: Uint8Array[] = [];
	#queueStart = 0;
	#queueOffset = 0;
	/** Whether the application has ended the body, which may still be waiting. */
	hasEnd = false;
	readonly #host: StreamHost;

	constructor(
		host: StreamHost,
		id: number,
		contentLength: number,
		receiveWindowBytes: number,
		sendWindow: number,
	) {
		this.#host = host;
		this.id = id;
		this.contentLength = contentLength;
		this.receiveWindow = new ReceiveWindow(receiveWindowBytes);
		this.sendWindow = sendWindow;
		this.initialSendWindow = sendWindow;
	}

	get unacknowledgedBytes(): number {
		return Math.max(0, this.initialSendWindow - this.sendWindow);
	}

	/** Whether the peer may send data now: its head has arrived. */
	abstract get acceptsData(): boolean;

	/** Whether data may still be of use to this side. */
	abstract get usesData(): boolean;

	/** @throws Error if no bytes can be written, because there is no head yet. */
	protected abstract checkHead(): void;

	write(bytes: Uint8Array): boolean {
		this.#checkWritable();
		if (this.isClosed || bytes.length === 0) {
			return !this.isClosed && this.unsentBytes < this.#host.limits.streamHighWaterMark;
		}
		if (!this.#host.send(this, bytes)) {
			return false;
		}
		if (this.unsentBytes >= this.#host.limits.streamHighWaterMark) {
			this.needsDrain = true;
			this.#host.noteDrained(this);
		}
		return !this.needsDrain;
	}

	end(bytes: Uint8Array = noBytes, trailers?: Fields): void {
		this.#checkWritable();
		if (trailers !== undefined) {
			this.#host.checkFields(0, trailers);
		}
		this.hasEnd = true;
		if (!this.isClosed) {
			this.trailers = trailers?.length === 0 ? undefined : trailers;
			this.#host.send(this, bytes.length === 0 ? undefined : bytes);
		}
	}

	consume(byteCount: number): void {
		if (this.isClosed) {
			return;
		}
		if (!(byteCount >= 0 && byteCount <= this.receiveWindow.unconsumed)) {
			throw new Error(
				`stream ${this.id} has ${this.receiveWindow.unconsumed} unconsumed bytes, got: ${byteCount}`,
			);
		}
		this.#host.returnCredit(this, byteCount);
	}

	reset(code: number): void {
		if (!this.isClosed) {
			this.#host.resetStream(this, code);
		}
	}

	#checkWritable(): void {
		this.checkHead();
		if (this.hasEnd) {
			throw new Error(`the body of stream ${this.id} has ended`);
		}
	}

	/** Whether the handler has been notified of the end. */
	get hasEnded(): boolean {
		return this.#ended !== undefined;
	}

	/** Whether there is something to send, credit or not. */
	get wantsToSend(): boolean {
		return this.unsentBytes > 0 || (this.hasEnd && !this.isLocalEnded);
	}

	/** Adds bytes to those that wait. */
	enqueue(bytes: Uint8Array): void {
		this.#queue.push(bytes);
		this.unsentBytes += bytes.length;
	}

	/** Takes consecutive waiting bytes: at least one if any are waiting, and at most `limit`. */
	dequeue(limit: number): Uint8Array {
		const first = this.#queue[this.#queueStart] ?? noBytes;
		const end = Math.min(first.length, this.#queueOffset + limit);
		const bytes =
			this.#queueOffset === 0 && end === first.length
				? first
				: first.subarray(this.#queueOffset, end);
		this.#queueOffset = end;
		if (end === first.length) {
			this.#queueOffset = 0;
			this.#queue[this.#queueStart++] = noBytes;
			// Moved in large steps, so that many small pieces cost no more than linear time.
			if (this.#queueStart === this.#queue.length || this.#queueStart >= 1024) {
				this.#queue.splice(0, this.#queueStart);
				this.#queueStart = 0;
			}
		}
		this.unsentBytes -= bytes.length;
		return bytes;
	}

	/** Drops what waits; returns the number of bytes. */
	dropQueue(): number {
		const dropped = this.unsentBytes;
		this.#queue = [];
		this.#queueStart = 0;
		this.#queueOffset = 0;
		this.unsentBytes = 0;
		return dropped;
	}

	/** Sets the handler. If the stream has already ended, the handler is notified of that. */
	attach(handler: StreamHandler): void {
		this.#handler = handler;
		if (this.#ended !== undefined && this.#ended !== "finished") {
			this.#notify(this.#ended);
		}
	}

	deliverData(bytes: Buffer): void {
		try {
			this.#handler?.onData(bytes);
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}

	deliverEnd(trailers: Fields): void {
		try {
			this.#handler?.onEnd(trailers);
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}

	deliverDrain(): void {
		try {
			this.#handler?.onDrain?.();
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}

	deliverProgress(): void {
		try {
			this.#handler?.onProgress?.();
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}

	/** The last event; a second one is dropped. */
	deliverFinish(): void {
		if (this.#ended === undefined) {
			this.#ended = "finished";
			try {
				this.#handler?.onFinish?.();
			} catch (error) {
				this.#host.handlerFailed(this, error);
			}
		}
	}

	/** The last event; a second one is dropped. */
	deliverReset(code: number, origin: ResetOrigin): void {
		if (this.#ended === undefined) {
			this.#ended = { code, origin };
			this.#notify(this.#ended);
		}
	}

	#notify({ code, origin }: Ended): void {
		try {
			this.#handler?.onReset(code, origin);
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}
}
