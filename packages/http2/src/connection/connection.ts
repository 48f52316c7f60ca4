import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, systemClock, type Timer } from "@plinth/runtime";
import { ConnectionError, errorCode } from "../error-code.ts";
import { flag, frameType, initialWindow, maxInt31, setting } from "../frames/frame.ts";
import { FrameReader } from "../frames/frame-reader.ts";
import { FrameWriter } from "../frames/frame-writer.ts";
import { HpackDecoder } from "../hpack/decoder.ts";
import type { ConnectionOptions, Http2CloseReason, Http2Counters, Http2Limits } from "../http2.ts";
import { defaultHttp2Limits } from "../limits.ts";
import { PeerSettings } from "./peer-settings.ts";
import { Pings } from "./pings.ts";
import type { Streams, StreamsHost } from "./streams.ts";
import { TokenBucket } from "./token-bucket.ts";

/**
 * One side of a connection.
 *
 *     socket ──▶ FrameReader ──▶ #onFrame ──▶ Streams ──▶ handlers
 *     socket ◀── #flush, once an iteration ◀── FrameWriter ◀── Sender, control frames
 *
 * Everything runs in the events of the socket, in calls of the handlers, and in `#flush`, which `setImmediate` calls
 * after all events of an iteration of the event loop. Nothing is asynchronous in between, so that the order of calls is
 * the order of frames.
 *
 * Events of the socket, timers and `#flush` run in `#run`: an error that they throw would stop the process.
 */
export abstract class Connection {
	readonly counters: Http2Counters = {
		streamsOpened: 0,
		streamsRefused: 0,
		resetsReceived: 0,
		resetsSent: 0,
		framesReceived: 0,
		bytesReceived: 0,
		bytesSent: 0,
		socketWrites: 0,
		cachedHeads: 0,
		readPauses: 0,
	};
	readonly closed: Promise<Http2CloseReason>;
	protected readonly limits: Http2Limits;
	protected readonly writer = new FrameWriter();
	protected readonly pings: Pings;
	/** `draining` when no further streams are opened; `ending` when nothing more is read. */
	protected state: "open" | "draining" | "ending" | "closed" = "open";
	protected abstract readonly streams: Streams;
	protected abstract readonly peerName: "client" | "server";
	readonly #socket: Duplex;
	readonly #clock: Clock;
	readonly #onInternalError: (error: unknown) => void;
	readonly #reader: FrameReader;
	readonly #decoder: HpackDecoder;
	readonly #settingsFrames: TokenBucket;
	protected readonly peer: PeerSettings;
	#reason: Http2CloseReason = { code: errorCode.noError, message: "" };
	#hasPeerSettings = false;
	#isSettingsAcknowledged = false;
	#isFlushScheduled = false;
	#isReadingPaused = false;
	/** The deadline for the preface; later, for the closing socket. */
	#deadline: Timer | undefined;
	#stallTimer: Timer | undefined;
	#drains = 0;
	/** `#drains` when the progress was last checked; -1 if the socket was not blocked. */
	#drainsBefore = -1;
	#headerBlockTimer: Timer | undefined;
	/** The stream whose header block is timed. */
	#timedBlock: number | undefined;
	#resolveClosed: (reason: Http2CloseReason) => void = () => {};

	/** @param expectsPreface - whether the peer is a client. */
	constructor(socket: Duplex, options: ConnectionOptions, expectsPreface: boolean) {
		const limits = { ...defaultHttp2Limits, ...options.limits };
		const clock = options.clock ?? systemClock;
		this.limits = limits;
		this.peer = new PeerSettings(expectsPreface);
		this.#clock = clock;
		this.#onInternalError = options.onInternalError ?? (() => {});
		this.#socket = socket;
		this.closed = new Promise((resolve) => {
			this.#resolveClosed = resolve;
		});
		this.#reader = new FrameReader(limits.maxFrameBytes, expectsPreface, this.#onFrame);
		this.#decoder = new HpackDecoder(limits.headerTableBytes);
		this.#settingsFrames = new TokenBucket(limits.settingsFrames, clock);
		this.pings = new Pings(this.writer, clock);
	}

	/** What the streams need. */
	protected streamsHost(onHandlerError: ((error: unknown) => void) | undefined): StreamsHost {
		const { limits } = this;
		return {
			limits,
			counters: this.counters,
			writer: this.writer,
			decoder: this.#decoder,
			peer: this.peer,
			controlFrames: new TokenBucket(limits.controlFrames, this.#clock),
			streamErrors: new TokenBucket(limits.streamErrors, this.#clock),
			onHandlerError: onHandlerError ?? (() => {}),
			scheduleFlush: () => this.scheduleFlush(),
		};
	}

	get activeStreams(): number {
		return this.streams.count;
	}

	get unsentBytes(): number {
		return this.streams.sender.unsentBytes;
	}

	// ── What the application calls ──

	/** Lets the open socket keep the process alive, as it does at first. */
	ref(): void {
		if (this.#socket instanceof Socket) {
			this.#socket.ref();
		}
	}

	/** Lets the process exit although the socket is open. */
	unref(): void {
		if (this.#socket instanceof Socket) {
			this.#socket.unref();
		}
	}

	async ping(): Promise<number> {
		if (this.isEnded) {
			throw new Error("the connection is closed");
		}
		const { promise, resolve, reject } = Promise.withResolvers<number>();
		this.pings.send(resolve, reject);
		this.scheduleFlush();
		return promise;
	}

	destroy(code: number = errorCode.noError): void {
		this.fail(code, "");
	}

	/** The last stream of the peer that this side may have processed, for GOAWAY. */
	protected abstract get lastStreamId(): number;

	/** Ends a draining connection if nothing is left to do. Called when that may be the case. */
	protected abstract endIfIdle(): void;

	/** The peer opens no further streams, or accepts none above `lastStreamId`. */
	protected onGoaway(_lastStreamId: number, _code: number, _debugData: Buffer): void {}

	/** The first SETTINGS of the peer, or further ones, have been applied. */
	protected onSettings(): void {}

	/** The connection is over: its streams are reset next. */
	protected onEnding(_reason: Http2CloseReason): void {}

	// ── The socket ──

	/**
	 * Sends the first frames, and begins to read.
	 *
	 * @param settings - in addition to those of both sides.
	 * @param head - bytes that were read already.
	 */
	protected start(
		settings: readonly (readonly [identifier: number, value: number])[],
		head: Uint8Array | undefined,
	): void {
		const { limits } = this;
		this.writer.settings([
			[setting.headerTableSize, limits.headerTableBytes],
			...settings,
			[setting.initialWindowSize, limits.streamWindowBytes],
			[setting.maxFrameSize, limits.maxFrameBytes],
			[setting.maxHeaderListSize, limits.maxHeaderListBytes],
		]);
		const increment = limits.connectionWindowBytes - initialWindow;
		if (increment > 0) {
			this.writer.windowUpdate(0, increment);
			this.streams.receiveWindow.resize(increment);
		}
		this.scheduleFlush();
		this.#deadline = this.setTimer(limits.prefaceTimeoutMs, () => {
			this.fail(errorCode.protocolError, `the ${this.peerName} did not send its preface in time`);
		});
		// The peer sends nothing more, not even credit for open responses.
		this.#socket.on("end", () => this.#run(() => this.end()));
		this.#socket.on("error", (error) => this.#onError(error));
		this.#socket.on("close", () => this.#run(() => this.#onClose()));
		if (head !== undefined && head.length > 0) {
			this.#onChunk(Buffer.from(head.buffer, head.byteOffset, head.byteLength));
		}
		this.#socket.on("data", this.#onChunk);
	}

	/** Runs a reaction to an event. An error that it throws ends the connection. */
	#run(reaction: () => void): void {
		try {
			reaction();
		} catch (error) {
			this.#failInternally();
			this.#onInternalError(error);
		}
	}

	#failInternally(): void {
		if (this.isEnded) {
			this.#socket.destroy();
			return;
		}
		try {
			this.fail(errorCode.internalError, "internal error");
		} catch {
			// What is broken is needed for an orderly end, too.
			this.#socket.destroy();
		}
	}

	protected setTimer(delayMs: number, callback: () => void): Timer {
		return this.#clock.setTimer(delayMs, () => this.#run(callback));
	}

	readonly #onChunk = (chunk: Buffer): void => {
		if (!this.isEnded) {
			this.#run(() => this.#read(chunk));
		}
	};

	#read(chunk: Buffer): void {
		this.counters.bytesReceived += chunk.length;
		try {
			this.#reader.read(chunk);
		} catch (error) {
			if (!(error instanceof ConnectionError)) {
				throw error;
			}
			this.fail(error.code, error.message);
		}
		this.#watchHeaderBlock();
		const buffered = this.writer.output.length + this.#socket.writableLength;
		if (buffered > this.limits.maxBufferedBytes && !this.#isReadingPaused && !this.isEnded) {
			this.#isReadingPaused = true;
			this.counters.readPauses++;
			this.#socket.pause();
		}
	}

	protected scheduleFlush(): void {
		if (!this.#isFlushScheduled) {
			this.#isFlushScheduled = true;
			setImmediate(this.#flush);
		}
	}

	readonly #flush = (): void => this.#run(this.#writeOutput);

	/** Passes everything that was written in this iteration to the socket, in one write. */
	readonly #writeOutput = (): void => {
		this.#isFlushScheduled = false;
		if (this.state === "closed" || this.streams.sender.isBlocked) {
			return;
		}
		this.streams.sender.pump();
		this.#writeToSocket();
		if (!this.streams.sender.isBlocked) {
			this.#afterWrite();
		}
		this.#watchStalls();
	};

	/** The socket has taken everything that was written. */
	#afterWrite(): void {
		this.streams.notify();
		this.endIfIdle();
		// In a later iteration, so that other connections are served in between.
		if (this.streams.sender.hasReady || this.writer.output.length > 0) {
			this.scheduleFlush();
		}
	}

	#writeToSocket(): void {
		const { length } = this.writer.output;
		if (length === 0) {
			return;
		}
		const chunks = this.writer.output.take();
		this.counters.bytesSent += length;
		this.counters.socketWrites++;
		const last = chunks.length - 1;
		this.streams.sender.isBlocked = true;
		if (last > 0) {
			this.#socket.cork();
		}
		for (let index = 0; index < last; index++) {
			this.#socket.write(chunks[index]);
		}
		this.#socket.write(chunks[last], this.#onWritten);
		if (last > 0) {
			this.#socket.uncork();
		}
	}

	/** While the socket takes a write, what follows is collected for the next one. */
	readonly #onWritten = (error?: Error | null): void => {
		if (!error && !this.isEnded) {
			this.#run(this.#onDrained);
		}
	};

	readonly #onDrained = (): void => {
		this.#drains++;
		this.streams.sender.isBlocked = false;
		if (this.#isReadingPaused) {
			this.#isReadingPaused = false;
			this.#socket.resume();
		}
		this.#afterWrite();
	};

	#onError(error: Error): void {
		if (!this.isEnded) {
			this.#reason = { code: errorCode.noError, message: error.message, cause: error };
		}
	}

	#onClose(): void {
		if (this.state !== "closed") {
			try {
				if (this.state !== "ending") {
					this.onEnding(this.#reason);
				}
				this.streams.resetAll(this.#reason.code);
			} finally {
				this.state = "closed";
				this.#reader.stop();
				this.#deadline?.cancel();
				this.#stallTimer?.cancel();
				this.#headerBlockTimer?.cancel();
				this.pings.rejectAll();
				this.#resolveClosed(this.#reason);
			}
		}
	}

	protected get isEnded(): boolean {
		return this.state === "ending" || this.state === "closed";
	}

	/** Ends the connection, and tells the peer why. */
	protected fail(code: number, message: string): void {
		if (!this.isEnded) {
			this.writer.goaway(this.lastStreamId, code, message);
			this.endWith({ code, message });
		}
	}

	/** Ends the connection. */
	protected endWith(reason: Http2CloseReason): void {
		if (!this.isEnded) {
			this.#reason = reason;
			this.end();
		}
	}

	/** Sends what was written, and closes the socket. Until the peer has closed its side, its bytes are dropped. */
	protected end(): void {
		if (this.isEnded) {
			return;
		}
		this.state = "ending";
		this.#reader.stop();
		this.onEnding(this.#reason);
		this.streams.resetAll(this.#reason.code);
		this.pings.rejectAll();
		this.#writeToSocket();
		this.#socket.end();
		// With unread bytes, the system would reset the connection and drop the GOAWAY.
		this.#socket.resume();
		this.#deadline?.cancel();
		this.#deadline = this.#clock.setTimer(this.limits.closeTimeoutMs, () => this.#socket.destroy());
	}

	/** Times a header block that is not complete. */
	#watchHeaderBlock(): void {
		const { blockedBy } = this.streams;
		if (blockedBy !== this.#timedBlock && !this.isEnded) {
			this.#timedBlock = blockedBy;
			this.#headerBlockTimer?.cancel();
			this.#headerBlockTimer =
				blockedBy === undefined
					? undefined
					: this.setTimer(this.limits.headerBlockTimeoutMs, () =>
							this.fail(errorCode.enhanceYourCalm, "a header block was not completed in time"),
						);
		}
	}

	/** While anything is waiting, checks periodically whether it makes progress. */
	#watchStalls(): void {
		const { sender } = this.streams;
		const waits = sender.unsentBytes > 0 || sender.isBlocked;
		if (waits && this.#stallTimer === undefined && !this.isEnded) {
			this.#stallTimer = this.setTimer(this.limits.stallTimeoutMs / 2, () => {
				this.#stallTimer = undefined;
				this.#checkProgress();
				this.#watchStalls();
			});
		}
	}

	/** Called twice per stall timeout: what has not moved since the previous call has stalled for half of it. */
	#checkProgress(): void {
		if (this.streams.sender.isBlocked && this.#drains === this.#drainsBefore) {
			this.fail(errorCode.enhanceYourCalm, `the ${this.peerName} is not reading`);
			this.#socket.destroy();
			return;
		}
		this.#drainsBefore = this.streams.sender.isBlocked ? this.#drains : -1;
		for (const stream of this.streams.openStreams()) {
			if (stream.unsentBytes > 0 && stream.sentBytes === stream.sentBytesBefore) {
				stream.reset(errorCode.cancel);
			}
			stream.sentBytesBefore = stream.unsentBytes > 0 ? stream.sentBytes : -1;
		}
	}

	// ── Frames ──

	readonly #onFrame = (
		type: number,
		flags: number,
		id: number,
		bytes: Buffer,
		start: number,
		end: number,
	): void => {
		this.counters.framesReceived++;
		const streams = this.streams;
		if (!this.#hasPeerSettings && (type !== frameType.settings || (flags & flag.ack) !== 0)) {
			throw new ConnectionError(errorCode.protocolError, "the first frame must be SETTINGS");
		}
		if (
			streams.blockedBy !== undefined &&
			(type !== frameType.continuation || id !== streams.blockedBy)
		) {
			throw new ConnectionError(
				errorCode.protocolError,
				"a header block was interrupted by another frame",
			);
		}
		switch (type) {
			case frameType.data:
				streams.onData(flags, id, bytes, start, end);
				break;
			case frameType.headers:
				streams.onHeaders(flags, id, bytes, start, end);
				break;
			case frameType.priority:
				streams.onPriority(id, end - start);
				break;
			case frameType.rstStream:
				checkLength("RST_STREAM", end - start, 4);
				streams.onRstStream(id, bytes.readUInt32BE(start));
				break;
			case frameType.windowUpdate:
				checkLength("WINDOW_UPDATE", end - start, 4);
				streams.onWindowUpdate(id, bytes.readUInt32BE(start) & maxInt31);
				break;
			case frameType.continuation:
				streams.onContinuation(flags, id, bytes, start, end);
				break;
			case frameType.pushPromise:
				throw new ConnectionError(
					errorCode.protocolError,
					`the ${this.peerName} has sent PUSH_PROMISE`,
				);
			default:
				this.#onConnectionFrame(type, flags, id, bytes, start, end);
		}
	};

	/** A frame that belongs to no stream. */
	#onConnectionFrame(
		type: number,
		flags: number,
		id: number,
		bytes: Buffer,
		start: number,
		end: number,
	): void {
		if (type !== frameType.settings) {
			this.streams.takeControlFrame();
		} else if (!this.#settingsFrames.take()) {
			throw new ConnectionError(errorCode.enhanceYourCalm, "too many SETTINGS frames");
		}
		const isKnown =
			type === frameType.settings || type === frameType.ping || type === frameType.goaway;
		if (isKnown && id !== 0) {
			throw new ConnectionError(
				errorCode.protocolError,
				"a connection-level frame has a stream identifier",
			);
		}
		if (type === frameType.settings) {
			this.#onSettings(flags, bytes, start, end);
		} else if (type === frameType.ping) {
			checkLength("PING", end - start, 8);
			if ((flags & flag.ack) !== 0) {
				this.pings.acknowledge(bytes, start);
			} else {
				this.writer.ping(bytes, start, true);
				this.scheduleFlush();
			}
		} else if (type === frameType.goaway) {
			if (end - start < 8) {
				throw new ConnectionError(errorCode.frameSizeError, "a GOAWAY frame is too short");
			}
			const lastStreamId = bytes.readUInt32BE(start) & maxInt31;
			this.onGoaway(lastStreamId, bytes.readUInt32BE(start + 4), bytes.subarray(start + 8, end));
		}
	}

	#onSettings(flags: number, bytes: Buffer, start: number, end: number): void {
		if ((flags & flag.ack) !== 0) {
			checkLength("SETTINGS with ACK", end - start, 0);
			this.#onSettingsAcknowledged();
			return;
		}
		if ((end - start) % 6 !== 0) {
			throw new ConnectionError(errorCode.frameSizeError, "a SETTINGS frame has the wrong size");
		}
		if ((end - start) / 6 > this.limits.maxSettings) {
			throw new ConnectionError(
				errorCode.enhanceYourCalm,
				"a SETTINGS frame has too many parameters",
			);
		}
		if (!this.#hasPeerSettings) {
			this.peer.begin();
		}
		const windowBefore = this.peer.initialWindowSize;
		for (let position = start; position < end; position += 6) {
			const identifier = bytes.readUInt16BE(position);
			this.peer.apply(identifier, bytes.readUInt32BE(position + 2));
			if (identifier === setting.headerTableSize) {
				// In order: a table that was 0 in between has lost its entries.
				this.streams.setEncoderLimit(this.peer.headerTableSize);
			}
		}
		// Once for the whole frame: it costs a look at every stream.
		this.streams.changeSendWindows(this.peer.initialWindowSize - windowBefore);
		this.writer.settingsAck();
		this.scheduleFlush();
		if (!this.#hasPeerSettings) {
			this.#hasPeerSettings = true;
			this.#deadline?.cancel();
		}
		this.onSettings();
	}

	#onSettingsAcknowledged(): void {
		if (this.#isSettingsAcknowledged) {
			throw new ConnectionError(
				errorCode.protocolError,
				`the ${this.peerName} acknowledged SETTINGS twice`,
			);
		}
		this.#isSettingsAcknowledged = true;
		this.#decoder.setLimit(this.limits.headerTableBytes);
		this.streams.onSettingsAcknowledged();
	}
}

function checkLength(name: string, length: number, expected: number): void {
	if (length !== expected) {
		throw new ConnectionError(errorCode.frameSizeError, `${name} has the wrong size`);
	}
}
