import { ConnectionError, errorCode } from "../error-code.ts";
import { clientPreface, frameHeaderBytes } from "./frame.ts";

/**
 * Takes a frame whose payload is in `bytes` from `start` to `end`. The bytes are not written to again, so that parts
 * of them may be kept.
 */
export type FrameListener = (
	type: number,
	flags: number,
	streamId: number,
	bytes: Buffer,
	start: number,
	end: number,
) => void;

/**
 * Cuts a peer's bytes into frames. A frame that lies within one chunk is not copied; one that
 * is spread over chunks is assembled in a buffer of its own, of at most the allowed size.
 */
export class FrameReader {
	readonly #maxFrameBytes: number;
	readonly #listener: FrameListener;
	/** The bytes of the preface that have arrived. */
	#prefaceBytes: number;
	#isStopped = false;
	/** A frame that has arrived in part: a buffer for its header or, once its length is known, for all of it. */
	#partial: Buffer | undefined;
	#filled = 0;

	/** @param expectsPreface - whether the bytes are those of a client, and begin with its preface. */
	constructor(maxFrameBytes: number, expectsPreface: boolean, listener: FrameListener) {
		this.#maxFrameBytes = maxFrameBytes;
		this.#listener = listener;
		this.#prefaceBytes = expectsPreface ? 0 : clientPreface.length;
	}

	/** Frames after this call are dropped, including the rest of the chunk that is being read. */
	stop(): void {
		this.#isStopped = true;
		this.#partial = undefined;
	}

	/**
	 * Calls the listener for each frame that is complete.
	 *
	 * @throws ConnectionError on a wrong preface or a frame that is too large, or what the listener throws.
	 */
	read(chunk: Buffer): void {
		let position = this.#prefaceBytes < clientPreface.length ? this.#readPreface(chunk) : 0;
		if (this.#partial !== undefined) {
			position = this.#fillPartial(chunk, position);
		}
		while (!this.#isStopped && chunk.length - position >= frameHeaderBytes) {
			const end = position + frameHeaderBytes + this.#lengthOf(chunk, position);
			if (end > chunk.length) {
				break;
			}
			this.#deliver(chunk, position, end);
			position = end;
		}
		if (!this.#isStopped && position < chunk.length) {
			this.#partial = Buffer.allocUnsafe(frameHeaderBytes);
			this.#filled = 0;
			this.#fillPartial(chunk, position);
		}
	}

	#readPreface(chunk: Buffer): number {
		const length = Math.min(clientPreface.length - this.#prefaceBytes, chunk.length);
		const expected = clientPreface.subarray(this.#prefaceBytes, this.#prefaceBytes + length);
		if (!expected.equals(chunk.subarray(0, length))) {
			throw new ConnectionError(errorCode.protocolError, "the client's preface is invalid");
		}
		this.#prefaceBytes += length;
		return length;
	}

	/** Returns the position after the bytes that it has used. */
	#fillPartial(chunk: Buffer, start: number): number {
		let position = start;
		while (this.#partial !== undefined && position < chunk.length) {
			const copied = chunk.copy(this.#partial, this.#filled, position);
			position += copied;
			this.#filled += copied;
			if (this.#filled === this.#partial.length) {
				this.#completePartial(this.#partial);
			}
		}
		return position;
	}

	/** The header, or the whole frame, has arrived. */
	#completePartial(partial: Buffer): void {
		const length = frameHeaderBytes + this.#lengthOf(partial, 0);
		if (partial.length < length) {
			const frame = Buffer.allocUnsafe(length);
			partial.copy(frame);
			this.#partial = frame;
		} else {
			this.#partial = undefined;
			this.#deliver(partial, 0, length);
		}
	}

	#lengthOf(bytes: Buffer, start: number): number {
		const high = (bytes[start] ?? 0) << 16;
		const length = high | ((bytes[start + 1] ?? 0) << 8) | (bytes[start + 2] ?? 0);
		if (length > this.#maxFrameBytes) {
			throw new ConnectionError(
				errorCode.frameSizeError,
				`a frame of ${length} bytes is above the limit of ${this.#maxFrameBytes}`,
			);
		}
		return length;
	}

	#deliver(bytes: Buffer, start: number, end: number): void {
		this.#listener(
			bytes[start + 3] ?? 0,
			bytes[start + 4] ?? 0,
			bytes.readUInt32BE(start + 5) & 0x7fffffff,
			bytes,
			start + frameHeaderBytes,
			end,
		);
	}
}
