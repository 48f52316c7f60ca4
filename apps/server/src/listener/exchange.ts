import { constants, type Http2Stream } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	createContextValues,
} from "@connectrpc/connect";
import type { Connection, Holder } from "./connection.ts";
import { RequestBody } from "./request-body.ts";
import { pathOf, type RequestHandler } from "./request-handler.ts";

/** Why the server ended an exchange before its response was taken. */
export type CutReason =
	/** The client took nothing of what waited for it for `writeStallMs`. */
	| "write_stall"
	/** The request body did not arrive in time. */
	| "request_timeout"
	/** A stream that the client can still write to had no message for `streamIdleMs`. */
	| "stream_idle"
	/** Too many bytes wait to be sent. */
	| "pending_bytes"
	/** Too many bytes of incomplete messages were received. */
	| "incomplete_bytes"
	/** Too many short responses wait to be taken: the oldest gave way. */
	| "short_responses";

/** What a request asks for: a method of some kind, or a plain HTTP response. */
export type ExchangeKind = DescMethod["methodKind"] | "plain";

/** What keeps the exchanges of a listener. */
export interface ExchangeKeeper {
	/** The time, in milliseconds, as of the last sweep. */
	readonly nowMs: number;
	/** Bytes of the exchange wait to be sent. May end exchanges, this one among them. */
	added(exchange: Exchange, bytes: number): void;
	/** Bytes of the exchange have been sent, or dropped. */
	removed(exchange: Exchange, bytes: number): void;
	/** The response was taken, or the client is gone. */
	closed(exchange: Exchange): void;
	/** The exchange is closed and its handler has returned: it holds nothing any more. */
	released(exchange: Exchange): void;
	/** The exchange counts for a limit of its own from now on. */
	admitted(exchange: Exchange): void;
	/** What remains of the exchange is a short response. */
	dismissed(exchange: Exchange): void;
	cut(exchange: Exchange, reason: CutReason): void;
}

/** Limits that apply to each exchange, in milliseconds. */
export interface ExchangeLimits {
	readonly writeStallMs: number;
	readonly requestMs: number;
	readonly streamIdleMs: number;
}

/**
 * What is written at once. A client makes progress when it has taken one piece; what the HTTP
 * implementation holds of a response, and can't give up, is never more than this.
 */
const pieceBytes = 64 * 1024;

/** What a client gets to end its request once it has its response, before the stream is reset. */
const unreadRequestMs = 5_000;

/** What a handler gets to respond after its request body failed, before the stream is reset. */
const respondMs = 10_000;

/** For how long a handler that ignores its signal keeps its place after the client has gone. */
const abandonedMs = 60_000;

const exchangeKey = createContextKey<Exchange | undefined>(undefined, {
	description: "the request and its response",
});

/** The exchange that a call arrived with. @throws Error where it did not arrive through a listener. */
export function exchangeOf(values: ContextValues): Exchange {
	const exchange = values.get(exchangeKey);
	if (exchange === undefined) {
		throw new Error("the call has no exchange: it did not arrive through a listener");
	}
	return exchange;
}

/** By what reports the end of a response. */
const exchangesOf = new WeakMap<object, Exchange>();

/** One listener for all: a closure for each exchange would be a good part of what an idle stream costs. */
function onFinish(this: object): void {
	exchangesOf.get(this)?.finished();
}

function onClose(this: object): void {
	exchangesOf.get(this)?.closed();
}

function ignore(): void {}

/** What an exchange counts for, besides its bytes. */
export interface Place {
	/** The exchange does not count any more. */
	leave(exchange: Exchange): void;
}

/**
 * One request and its response. It lasts until both hold: the client has taken the response or is gone, and
 * the handler has returned. Invariant: `pendingBytes` is what was written and not taken, and counts for
 * the connection, the holder and the keeper alike until it is taken or the exchange is closed.
 */
export class Exchange {
	readonly kind: ExchangeKind;
	readonly connection: Connection;
	#body: RequestBody | undefined;
	readonly startedMs: number;
	/** What its bytes count for. */
	holder: Holder;
	pendingBytes = 0;
	/** What its request holds of a message that is not decoded. */
	incomplete: { end(): void } | undefined;
	readonly #keeper: ExchangeKeeper;
	readonly #request: Parameters<RequestHandler>[0];
	readonly #response: Parameters<RequestHandler>[1];
	readonly #stream: Http2Stream | undefined;
	#controller: AbortController | undefined;
	#reason: ConnectError | undefined;
	/** Bytes that were handed to the HTTP implementation and not taken. */
	#unflushedBytes = 0;
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
	#place: Place | undefined;

	constructor(
		keeper: ExchangeKeeper,
		connection: Connection,
		kind: ExchangeKind,
		request: Parameters<RequestHandler>[0],
		response: Parameters<RequestHandler>[1],
	) {
		this.kind = kind;
		this.connection = connection;
		this.holder = connection;
		this.startedMs = keeper.nowMs;
		this.#activeMs = keeper.nowMs;
		this.#progressMs = keeper.nowMs;
		this.#keeper = keeper;
		this.#request = request;
		this.#response = response;
		// A response of HTTP/2 reports its end only when all of the stream has ended.
		if ("stream" in response) {
			this.#stream = response.stream;
			exchangesOf.set(response.stream, this);
			response.stream.on("finish", onFinish);
			response.stream.on("close", onClose);
		} else {
			this.#stream = undefined;
			exchangesOf.set(response, this);
			response.on("error", ignore);
			response.on("finish", onFinish);
			response.on("close", onClose);
		}
	}

	/** The client has all of the response. */
	finished(): void {
		this.#hasFinished = true;
		this.#activeMs = this.#keeper.nowMs;
		// What is left of the request is thrown away: neither a connection of HTTP/1.1 nor a stream of
		// HTTP/2 is done before all of it was read.
		this.#body?.stop();
		this.#request.resume();
		if (this.#stream !== undefined && !this.#request.readableEnded) {
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

	/** What was asked for. */
	get path(): string {
		return pathOf(this.#request);
	}

	get isClosed(): boolean {
		return this.#isClosed;
	}

	/** The body of the request. */
	get body(): RequestBody {
		this.#body ??= new RequestBody(this.#request, () => {
			this.#activeMs = this.#keeper.nowMs;
		});
		return this.#body;
	}

	/** Releases what only a running handler needs. The request must have been read. */
	park(): void {
		this.#body?.stop();
		this.#body = undefined;
		this.#controller = undefined;
		this.settled();
	}

	/** Context values of a call that find this exchange. */
	contextValues(): ContextValues {
		return createContextValues().set(exchangeKey, this);
	}

	/** Moves the exchange from the short responses to the limits of `place`, until it is released or dismissed. */
	admit(place: Place): void {
		this.#place = place;
		this.#keeper.admitted(this);
		if (this.#isReleased) {
			this.#leave();
		}
	}

	/** The call was refused: what is left is to send a short response. */
	dismiss(): void {
		this.#leave();
		if (!this.#isClosed) {
			this.#keeper.dismissed(this);
		}
	}

	/** Counts its bytes for another holder. */
	assign(holder: Holder): void {
		this.holder.pendingBytes -= this.pendingBytes;
		holder.pendingBytes += this.pendingBytes;
		this.holder = holder;
	}

	/**
	 * Writes a part of the response. Returns a promise where the client has to take it before there may be more.
	 *
	 * @param isWhole - no more data follows: the end may at once, and is sent with it.
	 * @throws ConnectError where the exchange is closed, or is closed before all of it was taken.
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

	/** The whole response was written. */
	end(): void {
		if (!this.#hasEnded && !this.#isClosed) {
			this.#hasEnded = true;
			if (this.pendingBytes === 0) {
				this.#progressMs = this.#keeper.nowMs;
			}
			this.#response.end();
		}
	}

	/** A plain response was written by other means. */
	wrote(): void {
		this.#hasEnded = true;
		this.#isSettled = true;
		this.#release();
	}

	/** The handler has returned: nothing more is written. */
	settled(): void {
		this.#isSettled = true;
		this.#release();
	}

	/** The request fails, and its response says why. */
	refuse(reason: CutReason): void {
		if (!this.#isClosed) {
			this.#keeper.cut(this, reason);
			this.body.fail(new ConnectError(cutMessages[reason], Code.ResourceExhausted));
		}
	}

	/** Resets the stream, or cuts the connection of HTTP/1.1. */
	cut(reason: CutReason): void {
		if (!this.#isClosed) {
			this.#keeper.cut(this, reason);
			this.#reset(constants.NGHTTP2_ENHANCE_YOUR_CALM);
			this.#closed(new ConnectError(cutMessages[reason], Code.ResourceExhausted));
		}
	}

	/** Ends the exchange without a response: nothing can be written any more. */
	destroy(): void {
		this.#reset(constants.NGHTTP2_INTERNAL_ERROR);
		this.#closed();
	}

	/** The response was taken, or the connection is gone. */
	closed(): void {
		this.#closed();
	}

	/** Ends what takes too long. Returns whether the handler has abandoned its place. */
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
			if (this.#hasFinished && !this.#request.readableEnded) {
				this.#reset(constants.NGHTTP2_NO_ERROR);
				this.#closed();
			} else {
				this.cut("write_stall");
				this.connection.probe?.();
			}
		} else if (this.#stream !== undefined && !this.#request.readableEnded) {
			this.#checkRequest(nowMs, limits, mayStall);
		}
		return undefined;
	}

	/** Of HTTP/2 alone: over HTTP/1.1 Node's own `requestTimeout` does the same. */
	#checkRequest(nowMs: number, limits: ExchangeLimits, mayStall: boolean): void {
		if (this.#hasFinished) {
			if (nowMs - this.#activeMs > unreadRequestMs) {
				this.#reset(constants.NGHTTP2_NO_ERROR);
				this.#closed();
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
		if (overdueMs <= 0 || this.#hasEnded || this.#clientHasEnded()) {
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

	/** Whether all of the request has arrived, read or not. */
	#clientHasEnded(): boolean {
		return this.#stream?.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE;
	}

	async #writePieces(data: Uint8Array): Promise<void> {
		for (let start = 0; start < data.length; start += pieceBytes) {
			if (!this.#writePiece(data.subarray(start, start + pieceBytes))) {
				await this.#flushed();
			}
			this.#throwIfClosed();
		}
	}

	/** Returns whether there may be more at once. */
	#writePiece(piece: Uint8Array): boolean {
		this.#unflushedBytes += piece.length;
		const onTaken = (failure?: Error | null) => {
			if (failure) {
				// The event that says so may be a while away, and writes would go on until then.
				this.#closed();
			} else {
				this.#taken(piece.length);
			}
		};
		// The two kinds of response share this signature, but not a type that says so.
		return "stream" in this.#response
			? this.#response.write(piece, "binary", onTaken)
			: this.#response.write(piece, onTaken);
	}

	#taken(bytes: number): void {
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

	#flushed(): Promise<void> {
		this.#flush ??= Promise.withResolvers();
		return this.#flush.promise;
	}

	#closed(reason?: ConnectError): void {
		if (this.#isClosed) {
			return;
		}
		this.#isClosed = true;
		this.#activeMs = this.#keeper.nowMs;
		const bytes = this.pendingBytes;
		this.pendingBytes = 0;
		this.#keeper.removed(this, bytes);
		this.#keeper.closed(this);
		if (!this.#isSettled) {
			this.#reason = reason ?? new ConnectError("the client went away", Code.Canceled);
			this.#flush?.reject(this.#reason);
			this.#controller?.abort(this.#reason);
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
		const place = this.#place;
		this.#place = undefined;
		place?.leave(this);
	}

	#throwIfClosed(): void {
		if (this.#isClosed) {
			throw this.#reason ?? new ConnectError("the client went away", Code.Canceled);
		}
	}

	#reset(code: number): void {
		if (this.#stream === undefined) {
			this.#request.socket.destroy();
		} else {
			this.#stream.close(code);
		}
	}
}

/** The server did not read it. */
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
