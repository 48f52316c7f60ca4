import {
	errorCode,
	type Fields,
	type Http2ClientStream,
	type ResetOrigin,
	type ResponseHandler,
} from "@plinth/http2";
import { isExcluded, type Session } from "@plinth/rpc-client/session";
import { ByteQueue } from "@plinth/runtime";
import { joinedFields, type ResponseHead, responseHead } from "../headers/response-headers.ts";
import type { Fields as JoinedFields } from "../inbound-call.ts";
import type { Server } from "../servers/server.ts";
import type { Place } from "../servers/server-network.ts";
import type { BodyStream } from "./request-body.ts";

/** How a stream to a server ended early. */
export type EarlyEnd =
	/** It is certain that the server did not process the call. */
	| { readonly kind: "excluded"; readonly reason: string }
	/** The connection was lost. What the server has done is not known. */
	| { readonly kind: "lost"; readonly reason: string }
	/** The server has reset the stream. */
	| { readonly kind: "reset"; readonly code: number };

/** Receives the events of an attempt: the head, chunks, and last either the end or an early end. */
export interface AttemptReader {
	responded(attempt: Attempt, head: ResponseHead): void;
	/** Returns a promise if the next chunk must wait. */
	received(chunk: Uint8Array): Promise<void> | undefined;
	ended(trailers: JoinedFields): void;
	endedEarly(attempt: Attempt, end: EarlyEnd): void;
}

/**
 * A call on a stream to one server. The place of the call on its connection is left when the stream has closed, which it
 * always does.
 *
 * Invariants: after `leave` and after the end the reader is told nothing. While the reader lets the next chunk wait, what
 * arrives is kept, and the server gets no credit for it: so it is at most a window of HTTP/2.
 */
export class Attempt implements ResponseHandler, BodyStream {
	readonly server: Server;
	readonly #session: Session;
	readonly #place: Place;
	#stream: Http2ClientStream | undefined;
	#reader: AttemptReader | undefined;
	/** What waits for the reader. */
	readonly #waiting = new ByteQueue();
	#isWaiting = false;
	/** The trailers of a response that has ended while chunks of it wait. */
	#trailers: Fields | undefined;
	#drained: (() => void) | undefined;

	constructor(server: Server, place: Place, session: Session, reader: AttemptReader) {
		this.server = server;
		this.#place = place;
		this.#session = session;
		this.#reader = reader;
	}

	/** Sends the head of the request. @throws Error if the session has just ended, or if a header is invalid. */
	open(head: Fields): void {
		this.#stream = this.#session.open(head, this);
	}

	/** Ends the stream, unless it has ended, or ends by itself because both sides are complete. */
	leave(): void {
		this.#reader = undefined;
		this.#waiting.clear();
		if (this.#trailers === undefined || this.#stream?.isLocalEnded !== true) {
			this.#stream?.reset(errorCode.cancel);
		}
	}

	// ── The request ──

	get isClosed(): boolean {
		return this.#stream?.isClosed ?? true;
	}

	write(chunk: Uint8Array): boolean {
		return this.#stream?.write(chunk) ?? false;
	}

	end(chunk?: Uint8Array): void {
		this.#stream?.end(chunk);
	}

	onceDrained(drained: () => void): void {
		this.#drained = drained;
	}

	onDrain(): void {
		const drained = this.#drained;
		this.#drained = undefined;
		drained?.();
	}

	// ── The response ──

	onHead(status: number, fields: Fields): void {
		this.#session.arrived();
		this.#reader?.responded(this, responseHead(status, fields));
	}

	onData(chunk: Buffer): void {
		this.#session.arrived();
		if (this.#isWaiting) {
			this.#waiting.push(chunk);
		} else {
			this.#pass(chunk);
		}
	}

	onEnd(trailers: Fields): void {
		this.#session.arrived();
		this.#trailers = trailers;
		if (!this.#isWaiting) {
			this.#finish();
		}
	}

	onFinish(): void {
		this.#closed();
	}

	onReset(code: number, origin: ResetOrigin): void {
		// Before the place is left: the connections of a server that was removed are closed with its last call.
		const end = this.#earlyEnd(code, origin);
		this.#closed();
		// What waits can't be completed any more.
		const reader = this.#trailers === undefined ? this.#reader : undefined;
		if (reader !== undefined) {
			this.#reader = undefined;
			reader.endedEarly(this, end);
		}
	}

	#closed(): void {
		this.#session.closed();
		this.#place.leave();
	}

	#pass(chunk: Uint8Array): void {
		const waiting = this.#reader?.received(chunk);
		if (waiting === undefined) {
			this.#stream?.consume(chunk.length);
			return;
		}
		this.#isWaiting = true;
		const resume = () => this.#resume(chunk.length);
		// If the client is gone, `leave` was called.
		waiting.then(resume, resume);
	}

	#resume(consumed: number): void {
		this.#isWaiting = false;
		this.#stream?.consume(consumed);
		while (!this.#isWaiting) {
			const next = this.#waiting.shift();
			if (next === undefined) {
				break;
			}
			this.#pass(next);
		}
		if (!this.#isWaiting && this.#trailers !== undefined) {
			this.#finish();
		}
	}

	#finish(): void {
		const reader = this.#reader;
		this.#reader = undefined;
		reader?.ended(joinedFields(this.#trailers ?? []));
		this.leave();
	}

	#earlyEnd(code: number, origin: ResetOrigin): EarlyEnd {
		const { failure } = this.#session;
		if (this.#stream !== undefined && isExcluded(this.#stream, code, origin)) {
			const reason = failure?.rawMessage ?? `${this.server.address} has refused the stream`;
			return { kind: "excluded", reason };
		}
		return failure === undefined
			? { kind: "reset", code }
			: { kind: "lost", reason: failure.rawMessage };
	}
}
