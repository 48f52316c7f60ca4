import { errorCode } from "../error-code.ts";
import { initialWindow } from "../frames/frame.ts";
import type { FrameWriter } from "../frames/frame-writer.ts";
import type { HpackEncoder } from "../hpack/encoder.ts";
import type { Http2Limits } from "../http2.ts";
import type { PeerSettings } from "./peer-settings.ts";
import type { Stream } from "./stream.ts";

/**
 * The bytes passed to the socket in one iteration of the event loop, limited so that a large response does not delay
 * small ones.
 */
const iterationBytes = 256 * 1024;

/**
 * Sends bodies and their ends as far as the peer's credit and the socket allow.
 *
 *     write ──▶ queue of the stream ──▶ ready ──▶ output ──▶ socket
 *                 waits for credit       waits for credit of the connection, for the socket, or for the next iteration
 *
 * Ready streams send one frame after the other, one of each stream. Invariants: a stream is ready if it wants to send,
 * has an identifier, and its own window allows it; `unsentBytes` is the sum of the streams'; neither window is ever used below 0.
 */
export class Sender {
	/** The connection's credit. */
	window = initialWindow;
	unsentBytes = 0;
	/** The socket has not taken the last write. */
	isBlocked = false;
	readonly #writer: FrameWriter;
	readonly #encoder: HpackEncoder;
	readonly #peer: PeerSettings;
	readonly #limits: Http2Limits;
	readonly #onLocalEnd: (stream: Stream) => void;
	#ready: Stream[] = [];
	#drained: Stream[] = [];

	constructor(
		writer: FrameWriter,
		encoder: HpackEncoder,
		peer: PeerSettings,
		limits: Http2Limits,
		onLocalEnd: (stream: Stream) => void,
	) {
		this.#writer = writer;
		this.#encoder = encoder;
		this.#peer = peer;
		this.#limits = limits;
		this.#onLocalEnd = onLocalEnd;
	}

	/** Whether streams could send more in the next iteration. */
	get hasReady(): boolean {
		if (this.isBlocked) {
			return false;
		}
		// An end without bytes needs no credit.
		return this.window > 0
			? this.#ready.length > 0
			: this.#ready.some(({ unsentBytes }) => unsentBytes === 0);
	}

	/**
	 * Sends a stream's bytes and its end, if it has ended; what can't be sent now waits.
	 *
	 * @returns an error code with which to reset the stream instead.
	 */
	send(stream: Stream, bytes: Uint8Array | undefined): number | undefined {
		if (stream.unsentBytes === 0 && this.#mayFrame(stream, bytes?.length ?? 0)) {
			this.#frame(stream, bytes);
			return undefined;
		}
		if (bytes !== undefined) {
			if (this.unsentBytes + bytes.length > this.#limits.maxUnsentBytes) {
				return errorCode.enhanceYourCalm;
			}
			stream.enqueue(bytes);
			this.unsentBytes += bytes.length;
		}
		this.check(stream);
		return undefined;
	}

	/** Adds a stream to the ready ones if it can send now. To be called after it received credit or bytes. */
	check(stream: Stream): void {
		const hasCredit = stream.sendWindow > 0 || stream.unsentBytes === 0;
		const isOpen = stream.id !== 0 && !stream.isClosed;
		if (!stream.isReady && isOpen && stream.wantsToSend && hasCredit) {
			stream.isReady = true;
			this.#ready.push(stream);
		}
	}

	/** Fills the output with frames of the ready streams. */
	pump(): void {
		let waiting = 0;
		while (waiting < this.#ready.length && this.#hasRoom()) {
			const stream = this.#ready.shift();
			if (stream === undefined) {
				return;
			}
			const isStuck = stream.unsentBytes > 0 && this.window <= 0;
			if (isStuck && stream.sendWindow > 0) {
				this.#ready.push(stream);
				waiting++;
				continue;
			}
			stream.isReady = false;
			if (!stream.isClosed && (stream.unsentBytes === 0 || stream.sendWindow > 0)) {
				waiting = 0;
				this.#sendOne(stream);
				this.check(stream);
			}
		}
	}

	/** Drops the waiting bytes of a closed stream. */
	drop(stream: Stream): void {
		this.unsentBytes -= stream.dropQueue();
	}

	/** Returns the streams whose bytes have all been sent since the last call. */
	takeDrained(): readonly Stream[] {
		if (this.#drained.length === 0) {
			return this.#drained;
		}
		const drained = this.#drained;
		this.#drained = [];
		return drained;
	}

	/** Lists a stream that needs a notice, once all its bytes are in the output. */
	noteDrained(stream: Stream): void {
		if (stream.needsDrain && stream.unsentBytes === 0 && !stream.isDrained) {
			stream.isDrained = true;
			this.#drained.push(stream);
		}
	}

	#hasRoom(): boolean {
		return !this.isBlocked && this.#writer.output.length < iterationBytes;
	}

	/** Whether a whole piece can be sent in one frame, ahead of no other stream. */
	#mayFrame(stream: Stream, length: number): boolean {
		return (
			stream.id !== 0 &&
			this.#ready.length === 0 &&
			length <= this.window &&
			length <= Math.max(0, stream.sendWindow) &&
			length <= this.#peer.maxFrameBytes &&
			this.#hasRoom()
		);
	}

	#sendOne(stream: Stream): void {
		if (stream.unsentBytes === 0) {
			this.#frame(stream, undefined);
			return;
		}
		const limit = Math.min(this.window, stream.sendWindow, this.#peer.maxFrameBytes);
		const bytes = stream.dequeue(limit);
		this.unsentBytes -= bytes.length;
		this.#frame(stream, bytes);
		this.noteDrained(stream);
	}

	/** Writes a DATA frame if there are bytes, and the stream's end if nothing else waits. */
	#frame(stream: Stream, bytes: Uint8Array | undefined): void {
		const isLast = stream.hasEnd && stream.unsentBytes === 0;
		const endsWithData = isLast && stream.trailers === undefined;
		if (bytes !== undefined || endsWithData) {
			const length = bytes?.length ?? 0;
			this.#writer.data(stream.id, bytes ?? noBytes, endsWithData);
			this.window -= length;
			stream.sendWindow -= length;
			stream.sentBytes += length;
		}
		if (isLast && stream.trailers !== undefined) {
			const block = this.#encoder.encode(0, stream.trailers);
			this.#writer.headers(stream.id, block, true, this.#peer.maxFrameBytes);
		}
		if (isLast) {
			this.#onLocalEnd(stream);
		}
	}
}

const noBytes: Uint8Array = new Uint8Array(0);
