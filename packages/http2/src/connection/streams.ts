import { ConnectionError, errorCode } from "../error-code.ts";
import { flag, initialWindow, maxInt31 } from "../frames/frame.ts";
import type { FrameWriter } from "../frames/frame-writer.ts";
import type { HpackDecoder } from "../hpack/decoder.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import type {
	Fields,
	Http2Connection,
	Http2Counters,
	Http2Limits,
	RequestHandler,
	RequestHead,
	ResetOrigin,
} from "../http2.ts";
import { checkResponseFields, problemOfTrailers } from "../message/fields.ts";
import { ClosedStreams } from "./closed-streams.ts";
import { HeadDecoder } from "./head-decoder.ts";
import { HeaderBlockAssembly } from "./header-block.ts";
import { endWithoutPadding } from "./padding.ts";
import type { PeerSettings } from "./peer-settings.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { Sender } from "./sender.ts";
import { ServerStream, type StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import type { TokenBucket } from "./token-bucket.ts";

/**
 * A smaller amount of credit is a control frame, and a smaller amount of data earns none. Small data is no control frame
 * itself: clients that stream small messages send nothing else.
 */
const tinyBytes = 256;

/**
 * The control frames that each write of a response earns: clients may return credit after each read, to the stream and
 * to the connection, in several parts, and measure the round trip.
 */
const framesPerWrite = 10;

const noFields: Fields = [];

/** What the streams need from their connection. */
export interface StreamsHost {
	readonly connection: Http2Connection;
	readonly limits: Http2Limits;
	readonly counters: Http2Counters;
	readonly writer: FrameWriter;
	readonly decoder: HpackDecoder;
	readonly peer: PeerSettings;
	/** The budget for frames that do nothing useful. */
	readonly controlFrames: TokenBucket;
	/** The budget for streams that the peer resets, or on which it breaks the protocol. */
	readonly streamErrors: TokenBucket;
	readonly onRequest: RequestHandler;
	readonly onHandlerError: (error: unknown) => void;
	scheduleFlush(): void;
}

/**
 * All streams of a connection, and the frames that belong to streams.
 *
 * Invariants:
 *
 * - `#open` holds the streams that are not closed. Above `highestId` all streams are idle; below, those that are not
 *   in the map are closed.
 * - The bytes that the connection's receive window counts as unconsumed are those of the open streams together.
 * - Header blocks are encoded when they are written to the output, and decoded when they are complete, whatever
 *   happens to their stream, so that both ends have the same tables.
 * - Errors of the connection are thrown as ConnectionError. Errors of a stream are sent by `#failStream` or `#refuse`,
 *   and count against a budget.
 */
export class Streams implements StreamHost {
	readonly limits: Http2Limits;
	readonly sender: Sender;
	/** The receive window of the connection. */
	readonly receiveWindow = new ReceiveWindow(initialWindow);
	/** Streams above this identifier are dropped, as announced by a GOAWAY. */
	lastAcceptedId = maxInt31;
	highestId = 0;
	readonly #host: StreamsHost;
	readonly #encoder = new HpackEncoder();
	readonly #heads: HeadDecoder;
	readonly #assembly: HeaderBlockAssembly;
	readonly #open = new StreamTable<ServerStream>();
	readonly #closed: ClosedStreams;
	/** Closed streams whose handlers are notified after the output was written. */
	#finished: ServerStream[] = [];
	/** The window of new streams: at least the protocol's default until the client has acknowledged ours. */
	#streamWindowBytes: number;

	constructor(host: StreamsHost) {
		const { limits, counters, decoder, peer, writer } = host;
		this.#host = host;
		this.limits = limits;
		this.#heads = new HeadDecoder(decoder, limits.maxHeaderListBytes, counters);
		this.#assembly = new HeaderBlockAssembly(limits);
		this.#closed = new ClosedStreams(Math.max(256, 2 * limits.maxConcurrentStreams));
		this.#streamWindowBytes = Math.max(limits.streamWindowBytes, initialWindow);
		this.sender = new Sender(writer, this.#encoder, peer, limits, (stream) => {
			stream.isLocalEnded = true;
			this.#finishIfEnded(stream);
		});
	}

	/** Streams that are not closed. */
	get count(): number {
		return this.#open.size;
	}

	/** Whether no stream is open and no notification of one is due. */
	get isIdle(): boolean {
		return this.#open.size === 0 && this.#finished.length === 0;
	}

	/** The stream whose header block is not complete: nothing but its next frame may come. */
	get blockedBy(): number | undefined {
		return this.#assembly.open?.streamId;
	}

	openStreams(): readonly ServerStream[] {
		return [...this.#open];
	}

	// ── Frames ──

	onHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		if (id % 2 === 0) {
			throw new ConnectionError(
				errorCode.protocolError,
				"HEADERS on a stream that a client can't open",
			);
		}
		const unpadded = endWithoutPadding(flags, bytes, start, end);
		const begin =
			start + ((flags & flag.padded) !== 0 ? 1 : 0) + ((flags & flag.priority) !== 0 ? 5 : 0);
		if (begin > unpadded) {
			throw new ConnectionError(errorCode.frameSizeError, "a HEADERS frame is too short");
		}
		const endStream = (flags & flag.endStream) !== 0;
		if ((flags & flag.endHeaders) !== 0) {
			this.#onBlock(id, endStream, bytes, begin, unpadded);
		} else {
			this.#assembly.begin({ streamId: id, endStream }, bytes.subarray(begin, unpadded));
		}
	}

	onContinuation(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const { open } = this.#assembly;
		if (open === undefined) {
			throw new ConnectionError(errorCode.protocolError, "CONTINUATION without a header block");
		}
		const isLast = (flags & flag.endHeaders) !== 0;
		const block = this.#assembly.continue(bytes.subarray(start, end), isLast);
		if (block !== undefined) {
			this.#onBlock(id, open.endStream, block, 0, block.length);
		}
	}

	onData(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		const length = end - start;
		const isEnd = (flags & flag.endStream) !== 0;
		if (!this.receiveWindow.receive(length)) {
			throw new ConnectionError(errorCode.flowControlError, "DATA exceeds the connection's window");
		}
		const unpadded = endWithoutPadding(flags, bytes, start, end);
		const begin = start + ((flags & flag.padded) !== 0 ? 1 : 0);
		const stream = this.#open.get(id);
		if (stream === undefined || stream.isRemoteEnded) {
			this.#returnToConnection(length);
			this.#refuseData(id, stream);
			return;
		}
		if (!stream.receiveWindow.receive(length)) {
			this.#returnToConnection(length);
			this.#failStream(stream, errorCode.flowControlError);
			return;
		}
		const size = unpadded - begin;
		// Even without padding: the peer has less credit left, so that some may be due to be returned.
		this.returnCredit(stream, length - size);
		stream.receivedBytes += size;
		const { contentLength } = stream.head;
		const isWrongLength =
			contentLength >= 0 &&
			(stream.receivedBytes > contentLength || (isEnd && stream.receivedBytes !== contentLength));
		if (isWrongLength) {
			this.#failStream(stream, errorCode.protocolError);
			return;
		}
		if (size === 0 && !isEnd) {
			this.takeControlFrame();
		} else if (size >= tinyBytes) {
			this.#host.controlFrames.refund();
		}
		if (size > 0) {
			stream.deliverData(bytes.subarray(begin, unpadded));
		}
		if (isEnd && !stream.isClosed) {
			this.#endRemote(stream, noFields);
		}
	}

	onRstStream(id: number, code: number): void {
		this.#checkNotIdle(id);
		this.#host.counters.resetsReceived++;
		this.#takeStreamError();
		const stream = this.#open.get(id);
		if (stream !== undefined) {
			this.#closed.addFinished(id);
			this.#close(stream, code, "peer");
		}
	}

	onWindowUpdate(id: number, increment: number): void {
		if (increment < tinyBytes) {
			this.takeControlFrame();
		}
		if (id === 0) {
			const window = this.sender.window + increment;
			if (increment === 0 || window > maxInt31) {
				const code = increment === 0 ? errorCode.protocolError : errorCode.flowControlError;
				throw new ConnectionError(code, `invalid credit for the connection: ${increment} bytes`);
			}
			this.sender.window = window;
			this.#host.scheduleFlush();
			return;
		}
		this.#checkNotIdle(id);
		const stream = this.#open.get(id);
		if (stream === undefined) {
			this.takeControlFrame();
		} else if (increment === 0) {
			this.#failStream(stream, errorCode.protocolError);
		} else if (stream.sendWindow + increment > maxInt31) {
			this.#failStream(stream, errorCode.flowControlError);
		} else {
			stream.sendWindow += increment;
			this.#wake(stream);
		}
	}

	/** RFC 9113 deprecates priorities: they are checked and ignored. */
	onPriority(id: number, length: number): void {
		this.takeControlFrame();
		if (id === 0) {
			throw new ConnectionError(errorCode.protocolError, "PRIORITY without a stream");
		}
		if (length !== 5) {
			const stream = this.#open.get(id);
			if (stream === undefined) {
				throw new ConnectionError(errorCode.frameSizeError, "a PRIORITY frame has the wrong size");
			}
			this.#failStream(stream, errorCode.frameSizeError);
		}
	}

	/** The peer has changed the initial window of streams. */
	changeSendWindows(by: number): void {
		if (by === 0) {
			return;
		}
		for (const stream of this.#open) {
			if (stream.sendWindow + by > maxInt31) {
				throw new ConnectionError(
					errorCode.flowControlError,
					"the new initial window makes a stream's window too large",
				);
			}
			stream.sendWindow += by;
			stream.initialSendWindow += by;
			this.#wake(stream);
		}
	}

	/** The client knows the initial window of this side, which may be smaller than the protocol's default. */
	onSettingsAcknowledged(): void {
		const by = this.limits.streamWindowBytes - this.#streamWindowBytes;
		this.#streamWindowBytes += by;
		if (by !== 0) {
			for (const stream of this.#open) {
				stream.receiveWindow.resize(by);
			}
		}
	}

	/** Counts a frame that does nothing useful. */
	takeControlFrame(): void {
		if (!this.#host.controlFrames.take()) {
			throw new ConnectionError(errorCode.enhanceYourCalm, "too many frames without effect");
		}
	}

	/** The socket has taken the output: notifies the handlers of streams that have sent what waited, or all. */
	notify(): void {
		for (const stream of this.sender.takeDrained()) {
			stream.isDrained = false;
			if (stream.isClosed) {
				continue;
			}
			if (stream.unsentBytes === 0) {
				stream.needsDrain = false;
				stream.deliverDrain();
			} else {
				stream.deliverProgress();
			}
		}
		if (this.#finished.length > 0) {
			const finished = this.#finished;
			this.#finished = [];
			for (const stream of finished) {
				stream.deliverFinish();
			}
		}
	}

	/** The connection is over. */
	resetAll(code: number): void {
		const streams = [...this.#finished, ...this.#open];
		this.#finished = [];
		this.#open.clear();
		for (const stream of streams) {
			stream.isClosed = true;
			this.sender.drop(stream);
		}
		for (const stream of streams) {
			stream.deliverReset(code, "connection");
		}
	}

	// ── What streams call ──

	checkFields(status: number, fields: Fields): void {
		if (!this.#encoder.isCached(status, fields)) {
			checkResponseFields(fields);
		}
	}

	sendHead(stream: ServerStream, status: number, fields: Fields, endStream: boolean): void {
		this.#sendBlock(stream.id, status, fields, endStream);
		if (endStream) {
			stream.isLocalEnded = true;
			this.#finishIfEnded(stream);
		}
	}

	sendContinue(stream: ServerStream): void {
		this.#sendBlock(stream.id, 100, noFields, false);
	}

	noteDrained(stream: ServerStream): void {
		this.sender.noteDrained(stream);
	}

	send(stream: ServerStream, bytes: Uint8Array | undefined): boolean {
		const code = this.sender.send(stream, bytes);
		if (code !== undefined) {
			this.resetStream(stream, code);
			return false;
		}
		this.#host.controlFrames.refund(framesPerWrite);
		this.#host.scheduleFlush();
		return true;
	}

	returnCredit(stream: ServerStream, byteCount: number): void {
		const increment = stream.receiveWindow.consume(byteCount);
		if (increment > 0 && !stream.isRemoteEnded) {
			this.#host.writer.windowUpdate(stream.id, increment);
			this.#host.scheduleFlush();
		}
		this.#returnToConnection(byteCount);
	}

	resetStream(stream: ServerStream, code: number): void {
		this.#sendReset(stream.id, code);
		this.#close(stream, code, "local");
	}

	handlerFailed(stream: ServerStream, error: unknown): void {
		this.#host.onHandlerError(error);
		stream.reset(errorCode.internalError);
	}

	// ── Header blocks ──

	#onBlock(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
		const stream = this.#open.get(id);
		if (stream !== undefined) {
			this.#onTrailers(stream, endStream, bytes, start, end);
		} else if (id <= this.highestId) {
			this.#heads.decode(bytes, start, end);
			this.#onClosedStream(id);
		} else {
			this.highestId = id;
			this.#onHead(id, endStream, bytes, start, end);
		}
	}

	#onHead(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
		const head = this.#heads.head(bytes, start, end);
		if (id > this.lastAcceptedId) {
			return;
		}
		if ("listBytes" in head) {
			this.#sendBlock(id, 431, noFields, true);
			if (endStream) {
				this.#takeStreamError();
				this.#closed.addFinished(id);
			} else {
				this.#refuse(id, errorCode.noError);
			}
		} else if ("problem" in head || (endStream && head.contentLength > 0)) {
			this.#refuse(id, errorCode.protocolError);
		} else if (this.#open.size >= this.limits.maxConcurrentStreams) {
			this.#refuse(id, errorCode.refusedStream);
		} else {
			this.#openStream(id, head, endStream);
		}
	}

	#openStream(id: number, head: RequestHead, endStream: boolean): void {
		const { counters, peer, connection, onRequest } = this.#host;
		const receiveBytes = this.#streamWindowBytes;
		const stream = new ServerStream(
			this,
			id,
			head,
			endStream,
			receiveBytes,
			peer.initialWindowSize,
		);
		this.#open.add(stream);
		counters.streamsOpened++;
		try {
			stream.attach(onRequest(stream, head, connection));
		} catch (error) {
			this.handlerFailed(stream, error);
			return;
		}
		if (endStream && !stream.hasEnded) {
			stream.deliverEnd(noFields);
		}
	}

	#onTrailers(
		stream: ServerStream,
		endStream: boolean,
		bytes: Buffer,
		start: number,
		end: number,
	): void {
		const { fields, listBytes } = this.#heads.decode(bytes, start, end);
		if (stream.isRemoteEnded) {
			this.#failStream(stream, errorCode.streamClosed);
		} else if (listBytes > this.limits.maxHeaderListBytes) {
			this.#failStream(stream, errorCode.enhanceYourCalm);
		} else if (
			!endStream ||
			problemOfTrailers(fields) !== undefined ||
			(stream.head.contentLength >= 0 && stream.head.contentLength !== stream.receivedBytes)
		) {
			this.#failStream(stream, errorCode.protocolError);
		} else {
			this.#endRemote(stream, fields);
		}
	}

	#sendBlock(id: number, status: number, fields: Fields, endStream: boolean): void {
		const block = this.#encoder.encode(status, fields);
		this.#host.writer.headers(id, block, endStream, this.#host.peer.maxFrameBytes);
		this.#host.controlFrames.refund();
		this.#host.scheduleFlush();
	}

	/** Sets the peer's limit for the table that this side encodes with. */
	setEncoderLimit(bytes: number): void {
		this.#encoder.setPeerLimit(bytes);
	}

	// ── Ends of streams ──

	#endRemote(stream: ServerStream, trailers: Fields): void {
		stream.isRemoteEnded = true;
		stream.deliverEnd(trailers);
		this.#finishIfEnded(stream);
	}

	#finishIfEnded(stream: ServerStream): void {
		if (stream.isRemoteEnded && stream.isLocalEnded && this.#open.delete(stream)) {
			stream.isClosed = true;
			this.#closed.addFinished(stream.id);
			this.#returnToConnection(stream.receiveWindow.unconsumed);
			this.#host.streamErrors.refund();
			this.#finished.push(stream);
			this.#host.scheduleFlush();
		}
	}

	#close(stream: ServerStream, code: number, origin: ResetOrigin): void {
		if (this.#open.delete(stream)) {
			stream.isClosed = true;
			this.sender.drop(stream);
			this.#returnToConnection(stream.receiveWindow.unconsumed);
			this.#host.scheduleFlush();
			stream.deliverReset(code, origin);
		}
	}

	/** Resets a stream because of what the peer did. */
	#failStream(stream: ServerStream, code: number): void {
		this.#takeStreamError();
		this.resetStream(stream, code);
	}

	/** Resets a stream that no handler knows. */
	#refuse(id: number, code: number): void {
		this.#takeStreamError();
		this.#host.counters.streamsRefused++;
		this.#sendReset(id, code);
	}

	#sendReset(id: number, code: number): void {
		this.#host.counters.resetsSent++;
		this.#closed.addReset(id);
		this.#host.writer.rstStream(id, code);
		this.#host.scheduleFlush();
	}

	#refuseData(id: number, stream: ServerStream | undefined): void {
		if (stream !== undefined) {
			this.#failStream(stream, errorCode.streamClosed);
			return;
		}
		this.#checkNotIdle(id);
		this.#onClosedStream(id);
	}

	/** HEADERS or DATA have arrived on a closed stream. */
	#onClosedStream(id: number): void {
		if (id > this.lastAcceptedId) {
			return;
		}
		const ending = this.#closed.endingOf(id);
		if (ending === "finished") {
			throw new ConnectionError(errorCode.streamClosed, `stream ${id} has ended`);
		}
		if (ending === "unknown") {
			throw new ConnectionError(
				errorCode.protocolError,
				`stream ${id} was skipped by a later one, or has ended`,
			);
		}
		this.takeControlFrame();
	}

	#checkNotIdle(id: number): void {
		if (id === 0 || id % 2 === 0 || id > this.highestId) {
			throw new ConnectionError(errorCode.protocolError, `stream ${id} is idle`);
		}
	}

	#takeStreamError(): void {
		if (!this.#host.streamErrors.take()) {
			throw new ConnectionError(errorCode.enhanceYourCalm, "too many streams were reset");
		}
	}

	#returnToConnection(byteCount: number): void {
		const increment = this.receiveWindow.consume(byteCount);
		if (increment > 0) {
			this.#host.writer.windowUpdate(0, increment);
			this.#host.scheduleFlush();
		}
	}

	#wake(stream: ServerStream): void {
		if (stream.wantsToSend) {
			this.sender.check(stream);
			this.#host.scheduleFlush();
		}
	}
}
