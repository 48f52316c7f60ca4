import { ConnectionError, errorCode } from "../error-code.ts";
import { flag, initialWindow, maxInt31 } from "../frames/frame.ts";
import type { FrameWriter } from "../frames/frame-writer.ts";
import type { HpackDecoder } from "../hpack/decoder.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import type { Fields, Http2Counters, Http2Limits, ResetOrigin } from "../http2.ts";
import { checkSentFields } from "../message/fields.ts";
import { ClosedStreams } from "./closed-streams.ts";
import { HeaderBlockAssembly } from "./header-block.ts";
import { endWithoutPadding } from "./padding.ts";
import type { PeerSettings } from "./peer-settings.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { Sender } from "./sender.ts";
import type { Stream, StreamHost } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";
import type { TokenBucket } from "./token-bucket.ts";

/**
 * A smaller amount of credit is a control frame, and a smaller amount of data earns none. Small data is no control frame
 * itself: clients that stream small messages send nothing else.
 */
const tinyBytes = 256;

/**
 * The control frames that each write of a body earns: peers may return credit after each read, to the stream and
 * to the connection, in several parts, and measure the round trip.
 */
const framesPerWrite = 10;

/** No header fields, or trailers. */
export const noFields: Fields = [];

/** What the streams need from their connection. */
export interface StreamsHost {
	readonly limits: Http2Limits;
	readonly counters: Http2Counters;
	readonly writer: FrameWriter;
	readonly decoder: HpackDecoder;
	readonly peer: PeerSettings;
	/** The budget for frames that do nothing useful, except SETTINGS. */
	readonly controlFrames: TokenBucket;
	/** The budget for streams that the peer resets, or on which it breaks the protocol. */
	readonly streamErrors: TokenBucket;
	readonly onHandlerError: (error: unknown) => void;
	scheduleFlush(): void;
}

/**
 * All streams of one side of a connection, and the frames that belong to streams. The sides differ in what a header block
 * means, and in who opens streams.
 *
 * Invariants:
 *
 * - `open` holds the streams that have an identifier and are not closed. Above `highestId` all streams are idle; below,
 *   those that are not in the table are closed.
 * - The bytes that the connection's receive window counts as unconsumed are those of the open streams together.
 * - Header blocks are encoded when they are written to the output, and decoded when they are complete, whatever
 *   happens to their stream, so that both ends have the same tables.
 * - Errors of the connection are thrown as ConnectionError. Errors of a stream are sent by `failStream`, and count against a
 *   budget.
 */
export abstract class Streams<Opened extends Stream = Stream> implements StreamHost {
	readonly limits: Http2Limits;
	readonly sender: Sender;
	/** The receive window of the connection. */
	readonly receiveWindow = new ReceiveWindow(initialWindow);
	highestId = 0;
	protected readonly host: StreamsHost;
	protected readonly encoder = new HpackEncoder();
	protected readonly open = new StreamTable<Opened>();
	protected readonly closed: ClosedStreams;
	/** The window of new streams: at least the protocol's default until the peer has acknowledged ours. */
	protected streamWindowBytes: number;
	readonly #assembly: HeaderBlockAssembly;
	/** Closed streams whose handlers are notified after the output was written. */
	#finished: Stream[] = [];

	constructor(host: StreamsHost) {
		const { limits, peer, writer } = host;
		this.host = host;
		this.limits = limits;
		this.#assembly = new HeaderBlockAssembly(limits);
		this.closed = new ClosedStreams(Math.max(256, 2 * limits.maxConcurrentStreams));
		this.streamWindowBytes = Math.max(limits.streamWindowBytes, initialWindow);
		this.sender = new Sender(writer, this.encoder, peer, limits, (stream) => this.endLocal(stream));
	}

	/** Streams that are not closed. */
	get count(): number {
		return this.open.size;
	}

	/** Whether no stream is open and no notification of one is due. */
	get isIdle(): boolean {
		return this.open.size === 0 && this.#finished.length === 0;
	}

	/** The stream whose header block is not complete: nothing but its next frame may come. */
	get blockedBy(): number | undefined {
		return this.#assembly.open?.streamId;
	}

	/** The streams that are not closed. */
	openStreams(): readonly Opened[] {
		return [...this.open];
	}

	// ── Frames ──

	onHeaders(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
		if (id % 2 === 0) {
			throw new ConnectionError(
				errorCode.protocolError,
				"HEADERS on a stream that no client can open",
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
			this.onBlock(id, endStream, bytes, begin, unpadded);
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
			this.onBlock(id, open.endStream, block, 0, block.length);
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
		const stream = this.open.get(id);
		if (stream === undefined || stream.isRemoteEnded) {
			this.returnToConnection(length);
			this.#refuseData(id, stream);
			return;
		}
		if (!stream.receiveWindow.receive(length)) {
			this.returnToConnection(length);
			this.failStream(stream, errorCode.flowControlError);
			return;
		}
		const size = unpadded - begin;
		// Even without padding: the peer has less credit left, so that some may be due to be returned.
		this.returnCredit(stream, length - size);
		stream.receivedBytes += size;
		const { contentLength } = stream;
		const isWrong =
			!stream.acceptsData ||
			(contentLength >= 0 &&
				(stream.receivedBytes > contentLength ||
					(isEnd && stream.receivedBytes !== contentLength)));
		if (isWrong) {
			this.failStream(stream, errorCode.protocolError);
			return;
		}
		if (size === 0 && !isEnd) {
			this.takeControlFrame();
		} else if (size >= tinyBytes && stream.usesData) {
			this.host.controlFrames.refund();
		}
		if (size > 0) {
			stream.deliverData(bytes.subarray(begin, unpadded));
		}
		if (isEnd && !stream.isClosed) {
			this.endRemote(stream, noFields);
		}
	}

	onRstStream(id: number, code: number): void {
		this.checkNotIdle(id);
		this.host.counters.resetsReceived++;
		this.takeStreamError();
		const stream = this.open.get(id);
		if (stream !== undefined) {
			this.closed.addFinished(id);
			this.close(stream, code, "peer");
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
			this.host.scheduleFlush();
			return;
		}
		this.checkNotIdle(id);
		const stream = this.open.get(id);
		if (stream === undefined) {
			this.takeControlFrame();
		} else if (increment === 0) {
			this.failStream(stream, errorCode.protocolError);
		} else if (stream.sendWindow + increment > maxInt31) {
			this.failStream(stream, errorCode.flowControlError);
		} else {
			stream.sendWindow += increment;
			this.wake(stream);
		}
	}

	/** RFC 9113 deprecates priorities: they are checked and ignored. */
	onPriority(id: number, length: number): void {
		this.takeControlFrame();
		if (id === 0) {
			throw new ConnectionError(errorCode.protocolError, "PRIORITY without a stream");
		}
		if (length !== 5) {
			const stream = this.open.get(id);
			if (stream === undefined) {
				throw new ConnectionError(errorCode.frameSizeError, "a PRIORITY frame has the wrong size");
			}
			this.failStream(stream, errorCode.frameSizeError);
		}
	}

	/** The peer has changed the initial window of streams. */
	changeSendWindows(by: number): void {
		if (by === 0) {
			return;
		}
		for (const stream of this.open) {
			if (stream.sendWindow + by > maxInt31) {
				throw new ConnectionError(
					errorCode.flowControlError,
					"the new initial window makes a stream's window too large",
				);
			}
			stream.sendWindow += by;
			stream.initialSendWindow += by;
			this.wake(stream);
		}
	}

	/** The peer knows the initial window of this side, which may be smaller than the protocol's default. */
	onSettingsAcknowledged(): void {
		const by = this.limits.streamWindowBytes - this.streamWindowBytes;
		this.streamWindowBytes += by;
		if (by !== 0) {
			for (const stream of this.open) {
				stream.receiveWindow.resize(by);
			}
		}
	}

	/** Counts a frame that does nothing useful. */
	takeControlFrame(): void {
		if (!this.host.controlFrames.take()) {
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
		const streams = [...this.#finished, ...this.open];
		this.#finished = [];
		this.open.clear();
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
		if (!this.encoder.isCached(status, fields)) {
			checkSentFields(fields);
		}
	}

	noteDrained(stream: Stream): void {
		this.sender.noteDrained(stream);
	}

	send(stream: Stream, bytes: Uint8Array | undefined): boolean {
		const code = this.sender.send(stream, bytes);
		if (code !== undefined) {
			this.resetStream(stream, code);
			return false;
		}
		this.host.controlFrames.refund(framesPerWrite);
		this.host.scheduleFlush();
		return true;
	}

	returnCredit(stream: Stream, byteCount: number): void {
		const increment = stream.receiveWindow.consume(byteCount);
		if (increment > 0 && !stream.isRemoteEnded) {
			this.host.writer.windowUpdate(stream.id, increment);
			this.host.scheduleFlush();
		}
		this.returnToConnection(byteCount);
	}

	resetStream(stream: Stream, code: number): void {
		this.sendReset(stream.id, code);
		this.close(stream, code, "local");
	}

	handlerFailed(stream: Stream, error: unknown): void {
		this.host.onHandlerError(error);
		stream.reset(errorCode.internalError);
	}

	// ── Header blocks ──

	/** A header block is complete. */
	protected abstract onBlock(
		id: number,
		endStream: boolean,
		bytes: Buffer,
		start: number,
		end: number,
	): void;

	/** Sends the head of a response, or fields without a status, which is 0 then. */
	protected sendBlock(id: number, status: number, fields: Fields, endStream: boolean): void {
		const block = this.encoder.encode(status, fields);
		this.host.writer.headers(id, block, endStream, this.host.peer.maxFrameBytes);
		this.host.controlFrames.refund();
		this.host.scheduleFlush();
	}

	/** Sets the peer's limit for the table that this side encodes with. */
	setEncoderLimit(bytes: number): void {
		this.encoder.setPeerLimit(bytes);
	}

	// ── Ends of streams ──

	/** A stream was removed from those that are open, unless the connection has ended. */
	protected streamClosed(): void {}

	/** The end of the body is in the output. */
	protected endLocal(stream: Stream): void {
		stream.isLocalEnded = true;
		this.finishIfEnded(stream);
	}

	protected endRemote(stream: Stream, trailers: Fields): void {
		stream.isRemoteEnded = true;
		stream.deliverEnd(trailers);
		this.finishIfEnded(stream);
	}

	protected finishIfEnded(stream: Stream): void {
		if (stream.isRemoteEnded && stream.isLocalEnded && this.open.delete(stream)) {
			stream.isClosed = true;
			this.closed.addFinished(stream.id);
			this.returnToConnection(stream.receiveWindow.unconsumed);
			this.host.streamErrors.refund();
			this.#finished.push(stream);
			this.host.scheduleFlush();
			this.streamClosed();
		}
	}

	protected close(stream: Stream, code: number, origin: ResetOrigin): void {
		if (this.remove(stream)) {
			stream.deliverReset(code, origin);
		}
	}

	/** Closes a stream without notifying its handler. Returns false if it has closed before. */
	protected remove(stream: Stream): boolean {
		if (!this.open.delete(stream)) {
			return false;
		}
		stream.isClosed = true;
		this.sender.drop(stream);
		this.returnToConnection(stream.receiveWindow.unconsumed);
		this.host.scheduleFlush();
		this.streamClosed();
		return true;
	}

	/** Resets a stream because of what the peer did. */
	protected failStream(stream: Stream, code: number): void {
		this.takeStreamError();
		this.resetStream(stream, code);
	}

	protected sendReset(id: number, code: number): void {
		this.host.counters.resetsSent++;
		this.closed.addReset(id);
		this.host.writer.rstStream(id, code);
		this.host.scheduleFlush();
	}

	#refuseData(id: number, stream: Stream | undefined): void {
		if (stream !== undefined) {
			this.failStream(stream, errorCode.streamClosed);
			return;
		}
		this.checkNotIdle(id);
		this.onClosedStream(id);
	}

	/** HEADERS or DATA have arrived on a closed stream. */
	protected onClosedStream(id: number): void {
		const ending = this.closed.endingOf(id);
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

	protected checkNotIdle(id: number): void {
		if (id === 0 || id % 2 === 0 || id > this.highestId) {
			throw new ConnectionError(errorCode.protocolError, `stream ${id} is idle`);
		}
	}

	protected takeStreamError(): void {
		if (!this.host.streamErrors.take()) {
			throw new ConnectionError(errorCode.enhanceYourCalm, "too many streams were reset");
		}
	}

	protected returnToConnection(byteCount: number): void {
		const increment = this.receiveWindow.consume(byteCount);
		if (increment > 0) {
			this.host.writer.windowUpdate(0, increment);
			this.host.scheduleFlush();
		}
	}

	protected wake(stream: Stream): void {
		if (stream.wantsToSend) {
			this.sender.check(stream);
			this.host.scheduleFlush();
		}
	}
}
