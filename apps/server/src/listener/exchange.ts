import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, createContextKey } from "@connectrpc/connect";
import { errorCode } from "@plinth/http2";
import { CallValues } from "@plinth/rpc-server";
import type { ListEntry } from "@plinth/runtime";
import type { Connection, Usage } from "./connection.ts";
import { RequestBody } from "./request-body.ts";
import {
	type HttpConnection,
	type HttpRequest,
	type HttpResponse,
	pathOf,
	type ResponseListener,
} from "./request-handler.ts";

/** Why the server ended an exchange before its response was read. */
export type CutReason =
	/** The client read nothing of its response for `writeStallMs`. */
	| "write_stall"
	/** The request body did not arrive in time. */
	| "request_timeout"
	/** A stream that the client can still write to received no message for `streamIdleMs`. */
	| "stream_idle"
	/** Too many response bytes are unread. */
	| "pending_bytes"
	/** Too many bytes of incomplete messages were received. */
	| "incomplete_bytes"
	/** Too many short responses are unread: the one not read for the longest time was ended. */
	| "short_responses";

/** The kind of a request: that of its method, or plain HTTP. */
export type ExchangeKind = DescMethod["methodKind"] | "plain";

/** Keeps the exchanges of a listener. */
export interface ExchangeKeeper {
	/** The time, in milliseconds, as of the last sweep. */
	readonly nowMs: number;
	/** Response bytes were written. May end exchanges, including this one. */
	added(exchange: Exchange, bytes: number): void;
	/** Response bytes were read by the client, or dropped. */
	removed(exchange: Exchange, bytes: number): void;
	/** The response was read, or the client is gone. */
	closed(exchange: Exchange): void;
	/** The exchange is closed and its handler has returned: it uses no more resources. */
	released(exchange: Exchange): void;
	/** The exchange was admitted, and counts toward the limit that admitted it. */
	admitted(exchange: Exchange): void;
	/** Only a short response remains of the exchange. */
	dismissed(exchange: Exchange): void;
	cut(exchange: Exchange, reason: CutReason): void;
	/**
	 * An exchange on a connection of HTTP/2 was reset. The client must show that it still reads.
	 *
	 * @param progressMs - the time since which it has read nothing of the response; the present time if nothing is unread.
	 */
	probe(connection: HttpConnection, progressMs: number): void;
}

/** Limits that apply to each exchange, in milliseconds. */
export interface ExchangeLimits {
	readonly writeStallMs: number;
	readonly requestMs: number;
	readonly streamIdleMs: number;
}

/**
 * The size of a single write. A client makes progress when it has read one piece. The HTTP implementation never
 * buffers more than this of a response, which it can't drop.
 */
export const pieceBytes = 64 * 1024;

/** How long a client has to end its request after it has read its response, before the stream is reset. */
const unreadRequestMs = 5_000;

/** How long a handler has to respond after its request body failed, before the stream is reset. */
const respondMs = 10_000;

/** How long a handler that ignores its signal counts for limits after the client has gone. */
const abandonedMs = 60_000;

const exchangeKey = createContextKey<Exchange | undefined>(undefined, {
	description: "the request and its response",
});

/** The exchange of a call. @throws Error if the call did not arrive through a listener. */
export function exchangeOf(values: ContextValues): Exchange {
	const exchange = values.get(exchangeKey);
	if (exchange === undefined) {
		throw new Error("the call has no exchange: it did not arrive through a listener");
	}
	return exchange;
}

/** A limit that an exchange counts toward. */
export interface Admission {
	/** The exchange no longer counts toward this limit. */
	leave(exchange: Exchange): void;
}

/**
 * One request and its response. It lasts until the client has read the response or is gone, and the handler has
 * returned. Invariant: `pendingBytes` is the number of bytes that were written and not read. It counts for the
 * connection, for `usage` and for the keeper, until the bytes are read or the exchange is closed.
 */
export class Exchange implements ResponseListener {
	readonly kind: ExchangeKind;
	readonly connection: Connection;
	#body: RequestBody | undefined;
	readonly startedMs: number;
	/** The usage that its bytes count for. */
	usage: Usage;
	pendingBytes = 0;
	/** The received part of a request message that is not decoded yet. */
	incomplete: { end(): void } | undefined;
	/** Notified when the signal aborts, without creating it. */
	carrier: { clientIsGone(reason: ConnectError): void } | undefined;
	/** Its places among all exchanges and among those with short responses, which belong to the keeper. */
	place: ListEntry<Exchange> | undefined;
	shortPlace: ListEntry<Exchange> | undefined;
	readonly #keeper: ExchangeKeeper;
	readonly #request: HttpRequest;
	readonly #response: HttpResponse;
	#controller: AbortController | undefined;
	#reason: ConnectError | undefined;
	/** Bytes that were passed to the HTTP implementation, which has not sent them yet. */
	#unflushedBytes = 0;
	/** Of these, the bytes that were passed together with the end. */
	#lastBytes = 0;
	#activeMs: number;
	#progressMs: number;
	/** The whole response was written. */
	#hasEnded = false;
	/** The client has all of the response; its request may not have ended. */
	#hasFinished = false;
	#isClosed = false;
	#isSettled = false;
	#isReleased = false;
	#flush: PromiseWithResolvers<void> | undefined;
	#admission: Admission | undefined;

	constructor(
		keeper: ExchangeKeeper,
		connection: Connection,
		usage: Usage,
		kind: ExchangeKind,
		request: HttpRequest,
		response: HttpResponse,
	) {
		this.kind = kind;
		this.connection = connection;
		this.usage = usage;
		this.startedMs = keeper.nowMs;
		this.#activeMs = keeper.nowMs;
		this.#progressMs = keeper.nowMs;
		this.#keeper = keeper;
		this.#request = request;
		this.#response = response;
		response.listen(this);
	}

	/** The IP address of the client, which an agent may have named; empty if it is not known. */
	get clientAddress(): string {
		return (this.#request.client ?? this.#request.connection).remoteAddress;
	}

	finished(): void {
		this.#hasFinished = true;
		if (this.#lastBytes > 0) {
			this.sent(this.#lastBytes);
			this.#lastBytes = 0;
		}
		this.#activeMs = this.#keeper.nowMs;
		// The rest of the request is discarded: a connection of HTTP/1.1 and a stream of HTTP/2 end only when all of
		// it was read.
		this.#body?.stop();
		this.#request.discard();
		if (this.#request.connection.isMultiplexed && !this.#request.isRead) {
			this.dismiss();
		}
	}

	/** Aborts when the client goes away, or the exchange is cut, before the handler has returned. */
	get signal(): AbortSignal {
		this.#controller ??= new AbortController();
		if (this.#reason !== undefined) {
			this.#controller.abort(this.#reason);
		}
		return this.#controller.signal;
	}

	/** The path of the request. */
	get path(): string {
		return pathOf(this.#request);
	}

	/** Whether the request has arrived on the port for agents, with a credential. */
	get isOfAgent(): boolean {
		return this.#request.isOfAgent === true;
	}

	get isClosed(): boolean {
		return this.#isClosed;
	}

	/** The time, as of the last sweep, since which the client has read nothing of what is unread. */
	get progressMs(): number {
		return this.#progressMs;
	}

	/** The body of the request. */
	get body(): RequestBody {
		this.#body ??= new RequestBody(this.#request, () => {
			this.#activeMs = this.#keeper.nowMs;
		});
		return this.#body;
	}

	/** Releases the memory that only a running handler needs. The request must have been read. */
	park(): void {
		this.#body?.stop();
		this.#body = undefined;
		this.#controller = undefined;
		this.settled();
	}

	/** Context values of a call, with this exchange. */
	contextValues(): ContextValues {
		return new CallValues().set(exchangeKey, this);
	}

	/** Counts the exchange for a limit instead of the short responses, until it is released or dismissed. */
	admit(admission: Admission): void {
		this.#admission = admission;
		this.#keeper.admitted(this);
		if (this.#isReleased) {
			this.#leave();
		}
	}

	/** The call was refused: only a short response remains to be sent. */
	dismiss(): void {
		this.#leave();
		if (!this.#isClosed) {
			this.#keeper.dismissed(this);
		}
	}

	/** Counts the unread bytes of the exchange for another usage. */
	assign(usage: Usage): void {
		this.usage.pendingBytes -= this.pendingBytes;
		usage.pendingBytes += this.pendingBytes;
		this.usage = usage;
	}

	/**
	 * Writes a part of the response. Returns a promise if the client must read before more is written.
	 *
	 * @param isWhole - no more data follows, so that the end can be sent with it.
	 * @throws ConnectError if the exchange is closed, or closes before all of the data was sent.
	 */
	write(data: Uint8Array, isWhole = false): Promise<void> | undefined {
		this.#throwIfClosed();
		if (this.pendingBytes === 0) {
			this.#progressMs = this.#keeper.nowMs;
		}
		this.#activeMs = this.#keeper.nowMs;
		this.pendingBytes += data.length;
		this.#keeper.added(this, data.length);
		this.#throwIfClosed();
		if (data.length > pieceBytes) {
			return this.#writePieces(data);
		}
		return this.#writePiece(data) || isWhole ? undefined : this.#flushed();
	}

	/**
	 * The whole response was written.
	 *
	 * @param last - the last part of it, of at most `pieceBytes`.
	 */
	end(last?: Uint8Array): void {
		if (this.#hasEnded || this.#isClosed) {
			return;
		}
		if (this.pendingBytes === 0) {
			this.#progressMs = this.#keeper.nowMs;
		}
		if (last === undefined) {
			this.#hasEnded = true;
			this.#response.end();
			return;
		}
		this.pendingBytes += last.length;
		this.#unflushedBytes += last.length;
		this.#keeper.added(this, last.length);
		if (!this.#isClosed) {
			this.#hasEnded = true;
			this.#lastBytes = last.length;
			this.#response.end(last);
		}
	}

	/** A plain response was written by other means. */
	wrote(): void {
		this.#hasEnded = true;
		this.#isSettled = true;
		this.#release();
	}

	/** The handler has returned, and writes nothing more. */
	settled(): void {
		this.#isSettled = true;
		this.#release();
	}

	/** Makes the request fail. The response contains the reason. */
	refuse(reason: CutReason): void {
		if (!this.#isClosed) {
			this.#keeper.cut(this, reason);
			this.body.fail(new ConnectError(cutMessages[reason], Code.ResourceExhausted));
		}
	}

	/** Resets the stream, or closes the connection of HTTP/1.1, and counts the reason. */
	cut(reason: CutReason): void {
		if (this.#isClosed) {
			return;
		}
		this.#keeper.cut(this, reason);
		this.#reset(
			errorCode.enhanceYourCalm,
			new ConnectError(cutMessages[reason], Code.ResourceExhausted),
		);
	}

	/** Ends the exchange without a response, or within it. */
	destroy(code: number = errorCode.internalError): void {
		this.#reset(code);
	}

	closed(): void {
		this.#closed();
	}

	/** Ends the exchange if it takes too long. Returns `abandoned` if the handler did not return after it was closed. */
	check(limits: ExchangeLimits, mayStall: boolean): "abandoned" | undefined {
		const { nowMs } = this.#keeper;
		if (this.#isClosed) {
			if (nowMs - this.#activeMs < abandonedMs) {
				return undefined;
			}
			this.#isSettled = true;
			this.#release();
			return "abandoned";
		}
		const waits = this.pendingBytes > 0 || this.#hasEnded;
		if (waits && !mayStall && nowMs - this.#progressMs > limits.writeStallMs) {
			if (this.#hasFinished && !this.#request.isRead) {
				this.#reset(errorCode.noError);
			} else {
				this.cut("write_stall");
			}
		} else if (this.#request.connection.isMultiplexed && !this.#request.isRead) {
			this.#checkRequest(nowMs, limits, mayStall);
		}
		return undefined;
	}

	/** For HTTP/2 only: over HTTP/1.1, Node's `requestTimeout` does the same. */
	#checkRequest(nowMs: number, limits: ExchangeLimits, mayStall: boolean): void {
		if (this.#hasFinished) {
			if (nowMs - this.#activeMs > unreadRequestMs) {
				this.#reset(errorCode.noError);
			}
			return;
		}
		const isStream = this.kind === "bidi_streaming" || this.kind === "client_streaming";
		if (isStream && mayStall) {
			return;
		}
		const overdueMs = isStream
			? nowMs - this.#activeMs - limits.streamIdleMs
			: nowMs - this.startedMs - limits.requestMs;
		if (overdueMs <= 0 || this.#hasEnded || this.#request.hasArrived) {
			return;
		}
		const reason = isStream ? "stream_idle" : "request_timeout";
		if (overdueMs > respondMs) {
			this.cut(reason);
		} else if (this.body.isPaused) {
			this.body.fail(new ConnectError(noRoom, Code.ResourceExhausted));
		} else {
			this.body.fail(new ConnectError(cutMessages[reason], Code.DeadlineExceeded));
		}
	}

	async #writePieces(data: Uint8Array): Promise<void> {
		for (let start = 0; start < data.length; start += pieceBytes) {
			if (!this.#writePiece(data.subarray(start, start + pieceBytes))) {
				await this.#flushed();
			}
			this.#throwIfClosed();
		}
	}

	/** Returns whether more can be written immediately. */
	#writePiece(piece: Uint8Array): boolean {
		this.#unflushedBytes += piece.length;
		return this.#response.write(piece);
	}

	sent(bytes: number): void {
		if (this.#isClosed) {
			return;
		}
		this.#unflushedBytes -= bytes;
		this.pendingBytes -= bytes;
		this.#progressMs = this.#keeper.nowMs;
		this.#keeper.removed(this, bytes);
		if (this.#unflushedBytes === 0) {
			this.#flush?.resolve();
			this.#flush = undefined;
		}
	}

	/**
	 * Resolves when the client has taken all that was written; `undefined` if it has. A handler whose messages replace each
	 * other waits for it, so that none is queued.
	 *
	 * @throws ConnectError if the exchange is closed first.
	 */
	whenTaken(): Promise<void> | undefined {
		this.#throwIfClosed();
		return this.#unflushedBytes === 0 ? undefined : this.#flushed();
	}

	#flushed(): Promise<void> {
		this.#flush ??= Promise.withResolvers();
		return this.#flush.promise;
	}

	/**
	 * Resets the stream, or closes the connection of HTTP/1.1. While the client reads nothing of the connection, the reset of a
	 * stream of HTTP/2 can't be sent, whether or not its own response is unread: only the end of the connection ends it.
	 */
	#reset(code: number, reason?: ConnectError): void {
		this.#response.reset(code);
		if (this.#isClosed) {
			return;
		}
		const { connection } = this.#request;
		const isUnread = this.pendingBytes > 0 || (this.#hasEnded && !this.#hasFinished);
		this.#closed(reason);
		if (connection.isMultiplexed) {
			this.#keeper.probe(connection, isUnread ? this.#progressMs : this.#keeper.nowMs);
		}
	}

	#closed(reason?: ConnectError): void {
		if (this.#isClosed) {
			return;
		}
		this.#isClosed = true;
		this.#response.listen(undefined);
		this.#activeMs = this.#keeper.nowMs;
		const bytes = this.pendingBytes;
		this.pendingBytes = 0;
		this.#keeper.removed(this, bytes);
		this.#keeper.closed(this);
		if (!this.#isSettled) {
			this.#reason = reason ?? new ConnectError("the client disconnected", Code.Canceled);
			this.#flush?.reject(this.#reason);
			this.#controller?.abort(this.#reason);
			this.carrier?.clientIsGone(this.#reason);
		}
		this.#release();
	}

	#release(): void {
		if (this.#isClosed && this.#isSettled && !this.#isReleased) {
			this.#isReleased = true;
			this.#leave();
			this.#keeper.released(this);
		}
	}

	#leave(): void {
		this.incomplete?.end();
		this.incomplete = undefined;
		const admission = this.#admission;
		this.#admission = undefined;
		admission?.leave(this);
	}

	#throwIfClosed(): void {
		if (this.#isClosed) {
			throw this.#reason ?? new ConnectError("the client disconnected", Code.Canceled);
		}
	}
}

/** The server did not read the request. */
const noRoom = "the server had no room for the request in time: try again later";

const cutMessages: Readonly<Record<CutReason, string>> = {
	write_stall: "the response was not read in time: read it faster",
	request_timeout: "the request did not arrive in time: send it without pauses",
	stream_idle: "no message arrived on the stream for too long: reopen it when needed",
	pending_bytes: "too many unread response bytes: read responses, or make fewer calls at once",
	incomplete_bytes:
		"too many incomplete requests: send large messages without pauses, or fewer of them at once",
	short_responses: "too many unread responses: read them",
};
