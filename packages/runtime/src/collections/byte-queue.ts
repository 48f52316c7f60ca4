/** A piece of fewer bytes is joined with those next to it: its object would use more memory than its bytes. */
const smallBytes = 1024;

/** A piece is copied if it keeps more than this many times the memory of its bytes. */
const sparse = 4;

/** The size of the largest block for small pieces. */
const largestBlockBytes = 16 * 1024;

const noBytes = new Uint8Array();

/**
 * Bytes that arrived in pieces and wait to be read, in memory that is proportional to their number.
 *
 * A piece is a view of what was read from a socket, and keeps all of that. So pieces that are small, or a small part of what
 * they keep, are copied into blocks, each of which is as large as everything before it:
 *
 * ```
 *   pieces   [view of a chunk][view][block][block: filled │ free]
 *             ├─taken─┤▲ #offset
 * ```
 *
 * A single piece that is not a small part of its memory is never copied, however small it is.
 *
 * Invariants: `length` is the number of bytes in the pieces after `#offset`. The pieces keep at most four times that memory,
 * and 2 KiB. If there is a `#block`, its filled part is the last piece.
 */
export class ByteQueue {
	#pieces: Uint8Array[] = [];
	/** The index of the first piece, and the bytes of it that were taken. */
	#start = 0;
	#offset = 0;
	#length = 0;
	/** The block to which further small pieces are added. */
	#block: Uint8Array | undefined;

	/** The number of bytes. */
	get length(): number {
		return this.#length;
	}

	/** Adds bytes at the end. They must not be changed after that. */
	push(bytes: Uint8Array): void {
		if (bytes.length === 0) {
			return;
		}
		const isAlone = this.#length === 0;
		this.#length += bytes.length;
		if ((isAlone || bytes.length >= smallBytes) && !isSparse(bytes)) {
			this.#pieces.push(bytes);
			this.#block = undefined;
		} else {
			this.#addToBlocks(bytes);
		}
	}

	/** Takes the next bytes, as many as are in one piece; `undefined` if there are none. */
	shift(): Uint8Array | undefined {
		const first = this.#pieces[this.#start];
		if (first === undefined) {
			return undefined;
		}
		const bytes = this.#offset === 0 ? first : first.subarray(this.#offset);
		this.#advance(bytes.length);
		this.#shrink();
		return isSparse(bytes) ? new Uint8Array(bytes) : bytes;
	}

	/** Takes one byte. @throws RangeError if there is none. */
	takeByte(): number {
		const byte = this.#pieces[this.#start]?.[this.#offset];
		if (byte === undefined) {
			throw new RangeError("there are no bytes");
		}
		this.#advance(1);
		return byte;
	}

	/** Takes so many bytes, as a copy. @throws RangeError if there are fewer. */
	take(length: number): Uint8Array {
		if (length > this.#length) {
			throw new RangeError(`there are ${this.#length} bytes, wanted: ${length}`);
		}
		const bytes = new Uint8Array(length);
		let taken = 0;
		while (taken < length) {
			const first = this.#pieces[this.#start] ?? noBytes;
			const part = first.subarray(this.#offset, this.#offset + length - taken);
			bytes.set(part, taken);
			taken += part.length;
			this.#advance(part.length);
		}
		this.#shrink();
		return bytes;
	}

	/** All bytes, which stay in the queue. */
	join(): Uint8Array {
		if (this.#pieces.length - this.#start !== 1) {
			const bytes = this.take(this.#length);
			this.push(bytes);
			return bytes;
		}
		return this.#pieces[this.#start]?.subarray(this.#offset) ?? noBytes;
	}

	/** Drops all bytes. */
	clear(): void {
		this.#pieces = [];
		this.#start = 0;
		this.#offset = 0;
		this.#length = 0;
		this.#block = undefined;
	}

	#addToBlocks(bytes: Uint8Array): void {
		const rest = this.#fillBlock(bytes);
		if (rest.length === 0) {
			return;
		}
		const size = Math.max(rest.length, Math.min(this.#length, largestBlockBytes));
		const block = new Uint8Array(size);
		block.set(rest);
		this.#pieces.push(block.subarray(0, rest.length));
		this.#block = block;
	}

	/** Returns the bytes for which there is no room in the last block. */
	#fillBlock(bytes: Uint8Array): Uint8Array {
		const block = this.#block;
		if (block === undefined) {
			return bytes;
		}
		const last = this.#pieces.length - 1;
		const filled = this.#pieces[last]?.length ?? 0;
		const part = bytes.subarray(0, block.length - filled);
		block.set(part, filled);
		this.#pieces[last] = block.subarray(0, filled + part.length);
		return bytes.subarray(part.length);
	}

	/** Takes bytes of the first piece. */
	#advance(byteCount: number): void {
		this.#length -= byteCount;
		this.#offset += byteCount;
		if (this.#offset < (this.#pieces[this.#start]?.length ?? 0)) {
			return;
		}
		this.#offset = 0;
		this.#pieces[this.#start] = noBytes;
		this.#start += 1;
		if (this.#start === this.#pieces.length) {
			this.clear();
		} else if (2 * this.#start >= this.#pieces.length) {
			// No more often, so that many pieces cost linear time.
			this.#pieces.splice(0, this.#start);
			this.#start = 0;
		}
	}

	/** Copies what has become a small part of its memory, because bytes were taken. */
	#shrink(): void {
		const last = this.#pieces.length - 1;
		if ((this.#block?.length ?? 0) > smallBytes + sparse * this.#length) {
			this.#pieces[last] = new Uint8Array(this.#pieces[last] ?? noBytes);
			this.#block = undefined;
		}
		const first = this.#pieces[this.#start] ?? noBytes;
		if (this.#offset > 0 && isSparse(first, first.length - this.#offset)) {
			this.#pieces[this.#start] = new Uint8Array(first.subarray(this.#offset));
			this.#offset = 0;
			if (this.#start === last) {
				this.#block = undefined;
			}
		}
	}
}

/** Whether so many bytes of a piece keep much more memory than their own. */
function isSparse(piece: Uint8Array, length = piece.length): boolean {
	const { byteLength } = piece.buffer;
	return byteLength > smallBytes && byteLength > sparse * length;
}
