const slabBytes = 64 * 1024;

/** A slab with less room than this is left to the garbage collector. */
const leastRoom = 4 * 1024;

/** Payloads of at least this size are passed to the socket as they are. Smaller ones are copied: a write costs more. */
const copyBelow = 4 * 1024;

/** Memory to be written to. */
interface Slab {
	readonly bytes: Buffer;
	position: number;
}

/**
 * Slabs that no connection holds. A connection takes one with the first byte of an iteration and returns the rest with
 * the last, so that idle connections hold none.
 */
const freeSlabs: Slab[] = [];
const maxFreeSlabs = 16;

/**
 * The bytes that a connection sends in this iteration of the event loop.
 *
 *     chunks       [ Buffer, Buffer, … ]           complete
 *     slab         ┊ used ┊ start … position ┊ room ┊    the chunk that is being written
 *
 * Bytes that were taken are not written to again.
 */
export class OutputBuffer {
	#chunks: Buffer[] = [];
	#chunkBytes = 0;
	#slab: Slab | undefined;
	#start = 0;

	/** The number of bytes that were written and not yet taken. */
	get length(): number {
		return this.#chunkBytes + (this.#slab === undefined ? 0 : this.#slab.position - this.#start);
	}

	/** Makes room for consecutive bytes, to be written at the slab's position. */
	reserve(byteCount: number): Slab {
		if (this.#slab !== undefined && this.#slab.bytes.length - this.#slab.position >= byteCount) {
			return this.#slab;
		}
		this.#completeChunk();
		const free = byteCount <= leastRoom ? freeSlabs.pop() : undefined;
		this.#slab = free ?? {
			bytes: Buffer.allocUnsafeSlow(Math.max(slabBytes, byteCount)),
			position: 0,
		};
		this.#start = this.#slab.position;
		return this.#slab;
	}

	/** Writes a payload. It belongs to the buffer. */
	write(bytes: Uint8Array): void {
		if (bytes.length < copyBelow) {
			const slab = this.reserve(bytes.length);
			slab.bytes.set(bytes, slab.position);
			slab.position += bytes.length;
			return;
		}
		this.#completeChunk();
		this.#chunks.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
		this.#chunkBytes += bytes.length;
	}

	/** Takes the bytes that were written, in order. */
	take(): readonly Buffer[] {
		this.#completeChunk();
		const slab = this.#slab;
		if (
			slab !== undefined &&
			slab.bytes.length - slab.position >= leastRoom &&
			freeSlabs.length < maxFreeSlabs
		) {
			freeSlabs.push(slab);
		}
		this.#slab = undefined;
		const chunks = this.#chunks;
		this.#chunks = [];
		this.#chunkBytes = 0;
		return chunks;
	}

	#completeChunk(): void {
		const slab = this.#slab;
		if (slab !== undefined && slab.position > this.#start) {
			this.#chunks.push(slab.bytes.subarray(this.#start, slab.position));
			this.#chunkBytes += slab.position - this.#start;
			this.#start = slab.position;
		}
	}
}
