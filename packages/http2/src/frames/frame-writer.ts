import { clientPreface, flag, frameHeaderBytes, frameType } from "./frame.ts";
import { OutputBuffer } from "./output-buffer.ts";

/** Writes the frames of one connection. They wait in `output`. */
export class FrameWriter {
	readonly output = new OutputBuffer();

	/** The first bytes of a client. */
	preface(): void {
		this.output.write(clientPreface);
	}

	/** The bytes belong to the connection. */
	data(streamId: number, bytes: Uint8Array, endStream: boolean): void {
		this.#header(bytes.length, frameType.data, endStream ? flag.endStream : 0, streamId, 0);
		if (bytes.length > 0) {
			this.output.write(bytes);
		}
	}

	/** A header block, with CONTINUATION frames if it is longer than `maxFrameBytes`. Its bytes are copied. */
	headers(streamId: number, block: Buffer, endStream: boolean, maxFrameBytes: number): void {
		let type: number = frameType.headers;
		let flags = endStream ? flag.endStream : 0;
		let start = 0;
		do {
			const end = Math.min(block.length, start + maxFrameBytes);
			flags |= end === block.length ? flag.endHeaders : 0;
			const length = end - start;
			const slab = this.#header(length, type, flags, streamId, length);
			block.copy(slab.bytes, slab.position, start, end);
			slab.position += length;
			type = frameType.continuation;
			flags = 0;
			start = end;
		} while (start < block.length);
	}

	rstStream(streamId: number, code: number): void {
		this.#uint32(this.#header(4, frameType.rstStream, 0, streamId, 4), code);
	}

	settings(values: readonly (readonly [identifier: number, value: number])[]): void {
		const slab = this.#header(values.length * 6, frameType.settings, 0, 0, values.length * 6);
		for (const [identifier, value] of values) {
			slab.position = slab.bytes.writeUInt16BE(identifier, slab.position);
			this.#uint32(slab, value);
		}
	}

	settingsAck(): void {
		this.#header(0, frameType.settings, flag.ack, 0, 0);
	}

	/** The payload is the eight bytes of `bytes` from `start` on. */
	ping(bytes: Buffer, start: number, isAck: boolean): void {
		const slab = this.#header(8, frameType.ping, isAck ? flag.ack : 0, 0, 8);
		slab.position += bytes.copy(slab.bytes, slab.position, start, start + 8);
	}

	goaway(lastStreamId: number, code: number, message: string): void {
		const debugData = Buffer.from(message);
		const slab = this.#header(8 + debugData.length, frameType.goaway, 0, 0, 8 + debugData.length);
		this.#uint32(slab, lastStreamId);
		this.#uint32(slab, code);
		slab.position += debugData.copy(slab.bytes, slab.position);
	}

	/** For the connection, if the stream is 0. */
	windowUpdate(streamId: number, increment: number): void {
		this.#uint32(this.#header(4, frameType.windowUpdate, 0, streamId, 4), increment);
	}

	/** Writes a frame's header, and makes room for `room` bytes after it. */
	#header(length: number, type: number, flags: number, streamId: number, room: number) {
		const slab = this.output.reserve(frameHeaderBytes + room);
		const { bytes, position } = slab;
		bytes[position] = length >>> 16;
		bytes[position + 1] = length >>> 8;
		bytes[position + 2] = length;
		bytes[position + 3] = type;
		bytes[position + 4] = flags;
		bytes[position + 5] = streamId >>> 24;
		bytes[position + 6] = streamId >>> 16;
		bytes[position + 7] = streamId >>> 8;
		bytes[position + 8] = streamId;
		slab.position = position + frameHeaderBytes;
		return slab;
	}

	#uint32(slab: { readonly bytes: Buffer; position: number }, value: number): void {
		slab.position = slab.bytes.writeUInt32BE(value, slab.position);
	}
}
