import type { Clock } from "@plinth/runtime";

/**
 * Header fields in their order: name, value, name, value, … Names are lowercase. Bytes of values are
 * characters (Latin-1).
 */
export type Fields = readonly string[];

/** The head of a request. Requests with the same header block share one: it must not be changed. */
export interface RequestHead {
	readonly method: string;
	/** Empty for CONNECT. */
	readonly scheme: string;
	/** From `:authority`, or else `host`; empty if there is neither. */
	readonly authority: string;
	/** Empty for CONNECT. */
	readonly path: string;
	/** All fields but the pseudo-header fields. */
	readonly fields: Fields;
	/** The value of `content-length` in bytes; -1 if there is none. */
	readonly contentLength: number;
}

/** Who ended a stream before both sides were done. */
export type ResetOrigin = "peer" | "local" | "connection";

/**
 * Receives the events of one stream, in this order: `onData` any number of times, `onEnd`, and last either
 * `onReset` or `onFinish`, one of which is called exactly once. `onReset` may come at any time, even within a
 * call of the stream's methods. An error that a method throws resets the stream with INTERNAL_ERROR.
 */
export interface StreamHandler {
	/**
	 * A chunk of the body. It belongs to the handler, and keeps all of what was read from the socket with it: one that is kept
	 * for longer than this call belongs into a `ByteQueue`. Each byte uses credit of the stream and of the connection,
	 * until the handler returns the credit with `consume`.
	 */
	onData(bytes: Buffer): void;
	/** The request is complete. `trailers` is empty if it has none. */
	onEnd(trailers: Fields): void;
	/**
	 * The socket has taken all bytes that were written, after `write` had returned false; or it has taken the whole
	 * response, and the request has not ended.
	 */
	onDrain?(): void;
	/**
	 * Instead of `onDrain`, if more was written while the socket took the rest: it has taken all but the stream's
	 * `unsentBytes`. A stream that is written to all the time may never get `onDrain`.
	 */
	onProgress?(): void;
	/** Both sides are done, and the socket has taken the whole response. */
	onFinish?(): void;
	/** The stream has ended early. Bytes that were not sent are dropped, and further calls do nothing. */
	onReset(code: number, origin: ResetOrigin): void;
}

/**
 * One request and its response. Calls on a stream that was reset do nothing, so that a handler needs no check.
 *
 * All methods throw an Error if misused: a second `respond`, bytes before it, bytes after the end.
 */
export interface Http2Stream {
	readonly id: number;
	/** Bytes of the response that were written, and wait for credit from the peer or for the socket. */
	readonly unsentBytes: number;
	/**
	 * Bytes of the response that were passed to the socket, and whose credit the peer has not returned: it has not
	 * received or not processed them. Exact as long as the peer does not raise a stream's window.
	 */
	readonly unacknowledgedBytes: number;
	/** Whether the stream has ended, early or not. */
	readonly isClosed: boolean;

	/** Sends an informational response with status 100, to a client that waits for it before it sends the body. */
	continue(): void;
	/** Sends the head of the response: a status from 200 on, and fields without pseudo-header fields. */
	respond(status: number, fields: Fields, endStream?: boolean): void;
	/**
	 * Sends bytes. They belong to the connection after the call. Returns whether more may be written now; otherwise
	 * `onDrain` follows. Bytes beyond `maxUnsentBytes` of the connection reset the stream.
	 */
	write(bytes: Uint8Array): boolean;
	/** Ends the response, optionally with final bytes and trailers. */
	end(bytes?: Uint8Array, trailers?: Fields): void;
	/** Returns credit for bytes that `onData` has delivered, so that the peer may send as many. */
	consume(byteCount: number): void;
	/** Ends the stream at once, with an error code of `errorCode`. */
	reset(code: number): void;
}

/**
 * Receives the events of one request that this side has made: first `onHead`, with the head of the response, and then
 * those of a `StreamHandler`. `onReset` may come at any time.
 */
export interface ResponseHandler extends StreamHandler {
	/** Informational responses are dropped. */
	onHead(status: number, fields: Fields): void;
}

/**
 * One request of this side, and its response. Calls on a stream that was reset do nothing. The methods are those of
 * `Http2Stream`, for the body of the request and the credit of the response.
 */
export interface Http2ClientStream
	extends Pick<Http2Stream, "unsentBytes" | "isClosed" | "write" | "consume" | "reset"> {
	/** 0 while the request waits because the server has as many open as it accepts. */
	readonly id: number;
	/** Whether all of the request has been sent. */
	readonly isLocalEnded: boolean;
	/** Ends the request, optionally with final bytes and trailers. */
	end(bytes?: Uint8Array, trailers?: Fields): void;
}

/** Called for each request with a valid head, before its body. */
export type RequestHandler = (
	stream: Http2Stream,
	head: RequestHead,
	connection: Http2Connection,
) => StreamHandler;

/** One connection of a client. */
export interface Http2Connection {
	readonly counters: Readonly<Http2Counters>;
	/** Streams that have not ended. */
	readonly activeStreams: number;
	/** Bytes of all responses that wait for credit or for the socket. */
	readonly unsentBytes: number;
	/** Resolves when the socket has closed; never rejects. */
	readonly closed: Promise<Http2CloseReason>;

	/**
	 * Resolves with the round trip in milliseconds.
	 *
	 * @throws Error if the connection closes first, or if 16 pings are outstanding.
	 */
	ping(): Promise<number>;
	/**
	 * Sends GOAWAY: requests above `lastStreamId` are dropped from now on; the others continue. A later call can only
	 * lower it. By default, it is the last stream that was accepted.
	 */
	goaway(code: number, lastStreamId?: number): void;
	/**
	 * Closes gracefully: sends a GOAWAY that still accepts all requests and, after a round trip, one with the last
	 * request; lets the streams finish; then ends the socket. Resolves with `closed`.
	 */
	close(): Promise<Http2CloseReason>;
	/** Sends GOAWAY, resets all streams, and ends the socket. */
	destroy(code?: number): void;
}

/** One connection to a server. */
export interface Http2ClientConnection
	extends Pick<Http2Connection, "counters" | "activeStreams" | "unsentBytes" | "closed" | "ping"> {
	/** Whether it accepts requests: it has not been closed, and the server has not announced its end. */
	readonly isOpen: boolean;
	/** The streams that the server accepts at the same time. Further requests wait. */
	readonly maxConcurrentStreams: number;

	/**
	 * Makes a request, whose body follows: call `end` even if there is none.
	 *
	 * @param fields - `:method` first, the other pseudo-header fields, and then the rest. Requests that repeat are encoded once.
	 * @throws Error if the connection is not open, or if the request would be malformed.
	 */
	request(fields: Fields, handler: ResponseHandler): Http2ClientStream;
	/** Accepts no further requests, lets those that were made finish, and ends the socket. Resolves with `closed`. */
	close(): Promise<Http2CloseReason>;
	/** Sends GOAWAY, resets all streams, and ends the socket. */
	destroy(code?: number): void;
	/** Lets the open socket keep the process alive, as it does at first. */
	ref(): void;
	/** Lets the process exit although the socket is open. */
	unref(): void;
}

/** Why a connection closed. */
export interface Http2CloseReason {
	/** The code of the GOAWAY that this side sent; NO_ERROR if it sent none. */
	readonly code: number;
	/** A description of the error, for logs; empty if there was none. */
	readonly message: string;
	/** The error of the socket, if that has ended the connection. */
	readonly cause?: Error;
}

/** Counts of what a connection has done so far. */
export interface Http2Counters {
	streamsOpened: number;
	streamsRefused: number;
	/** RST_STREAM frames by direction. */
	resetsReceived: number;
	resetsSent: number;
	framesReceived: number;
	bytesReceived: number;
	bytesSent: number;
	/** Calls of the socket's `write` or `writev`. */
	socketWrites: number;
	/** Requests whose header block was not decoded, because an equal one had been. */
	cachedHeads: number;
	/** How often reading paused because the peer did not read. */
	readPauses: number;
}

/** The limits of a connection. Each is enforced; none can be reached by a client that follows the protocol. */
export interface Http2Limits {
	/** Streams that a client may have open; more are refused. */
	readonly maxConcurrentStreams: number;
	/** The size of a request's header fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts it. Larger ones get status 431. */
	readonly maxHeaderListBytes: number;
	/** The number of CONTINUATION frames in one header block. */
	readonly maxContinuations: number;
	/** The number of parameters in one SETTINGS frame. */
	readonly maxSettings: number;
	/** The HPACK table that clients may use, in bytes. */
	readonly headerTableBytes: number;
	/** The credit for request bytes that handlers have not consumed: per stream, and for the connection. */
	readonly streamWindowBytes: number;
	readonly connectionWindowBytes: number;
	/** The largest frame that clients may send, in bytes. */
	readonly maxFrameBytes: number;
	/** `write` returns false while this many bytes of a stream's response, or more, are waiting; if it is 0, always. */
	readonly streamHighWaterMark: number;
	/** The waiting bytes of all responses together. A stream that writes more is reset with ENHANCE_YOUR_CALM. */
	readonly maxUnsentBytes: number;
	/** While this many bytes wait for the socket, nothing more is read from the peer. */
	readonly maxBufferedBytes: number;
	/**
	 * Frames that do nothing useful (PING, empty DATA, PRIORITY, credit of fewer than 256 bytes): at once and per second.
	 * Each part of a response allows further ones, and so does each frame of 256 bytes of data or more until the response
	 * has ended. Other data and credit is not counted, because the windows limit it.
	 */
	readonly controlFrames: RateLimit;
	/** SETTINGS frames: at once and per second. Each may change the windows of all streams, so that nothing allows more. */
	readonly settingsFrames: RateLimit;
	/**
	 * Streams that the client resets or that break the protocol: at once and per second. Each stream that ends otherwise
	 * allows a further one.
	 */
	readonly streamErrors: RateLimit;
	/** Milliseconds within which the client's preface and SETTINGS must arrive. */
	readonly prefaceTimeoutMs: number;
	/** Milliseconds after which a connection is ended whose client does not complete a header block. */
	readonly headerBlockTimeoutMs: number;
	/**
	 * Milliseconds after which a response that makes no progress is reset, and a connection is ended whose socket takes
	 * nothing; infinite if the caller does so.
	 */
	readonly stallTimeoutMs: number;
	/** Milliseconds that a closing connection waits for the peer. */
	readonly closeTimeoutMs: number;
}

/** How much of something is tolerated: `burst` at once, then `perSecond` on average. */
export interface RateLimit {
	readonly burst: number;
	readonly perSecond: number;
}

/** Options of a connection, of either side. */
export interface ConnectionOptions {
	/** The limits that differ from `defaultHttp2Limits`. */
	readonly limits?: Partial<Http2Limits>;
	/** The system clock by default. */
	readonly clock?: Clock;
	/** Called with the errors that handlers throw. */
	readonly onHandlerError?: (error: unknown) => void;
	/**
	 * Called with an error that neither a handler nor the peer has caused: a bug of this package. The connection ends with
	 * INTERNAL_ERROR, and no other is affected.
	 */
	readonly onInternalError?: (error: unknown) => void;
}

/** Options of `serveHttp2`. */
export interface ServeOptions extends ConnectionOptions {
	/** Bytes from the client that were already read from the socket, such as the preface. */
	readonly head?: Uint8Array;
}

/** Options of `connectHttp2`. */
export interface ConnectOptions extends ConnectionOptions {
	/** Called for each SETTINGS of the server, once it has been applied. */
	readonly onSettings?: () => void;
	/**
	 * Called when the server announces the end of the connection. The streams that it has not processed, which are those above
	 * `lastStreamId` and those that wait, have closed, and get their `onReset` with REFUSED_STREAM next. With another code than
	 * NO_ERROR, the connection ends after that.
	 */
	readonly onGoaway?: (lastStreamId: number, code: number, debugData: Uint8Array) => void;
	/** Called once, when the connection has ended, before its streams are reset. */
	readonly onEnding?: (reason: Http2CloseReason) => void;
}
