/**
 * Writes the wire format of Protocol Buffers from the last byte to the first. The length of a nested message, which
 * precedes its content on the wire, is thus written after the content, when it is known.
 *
 * The methods for fields write the value, its length if it has one, and the tag.
 */
export class BackwardWriter {
	#buffer = Buffer.allocUnsafeSlow(initialBytes);
	/** The offset of the first written byte. */
	#start = initialBytes;

	/** The number of bytes written. */
	get length(): number {
		return this.#buffer.length - this.#start;
	}

	/**
	 * Returns a copy of all written bytes, preceded by `zeros` zero bytes. The writer is empty afterwards.
	 *
	 * @param isLasting - whether the copy gets memory of its own, so that it may be kept for long. Otherwise, it may be a
	 * slice of a larger block of Node's buffer pool, which stays in memory as long as any of its slices.
	 */
	finish(zeros: number, isLasting: boolean): Uint8Array<ArrayBuffer> {
		const { length } = this;
		const bytes = isLasting ? new Uint8Array(zeros + length) : Buffer.allocUnsafe(zeros + length);
		// Not `fill`, which costs more for a few bytes.
		for (let at = 0; at < zeros; at++) {
			bytes[at] = 0;
		}
		bytes.set(this.#buffer.subarray(this.#start), zeros);
		this.clear();
		return bytes;
	}

	/** Drops the written bytes, and replaces a large buffer with a small one. */
	clear(): void {
		if (this.#buffer.length > keptBytes) {
			this.#buffer = Buffer.allocUnsafeSlow(initialBytes);
		}
		this.#start = this.#buffer.length;
	}

	/** Writes a string field, as UTF-8. */
	string(value: string, tag: number): void {
		this.#reserve(value.length * 3 + headBytes);
		const end = this.#start;
		if (value.length > longestAsciiLoop || !this.#ascii(value)) {
			const size = Buffer.byteLength(value);
			this.#start -= size;
			this.#buffer.write(value, this.#start);
		}
		this.#varint(end - this.#start);
		this.#varint(tag);
	}

	/** Writes a `bytes` field. */
	bytes(value: Uint8Array, tag: number): void {
		this.#reserve(value.byteLength + headBytes);
		this.#start -= value.byteLength;
		this.#buffer.set(value, this.#start);
		this.#varint(value.byteLength);
		this.#varint(tag);
	}

	/**
	 * Writes an integer field.
	 *
	 * @param value - at least 0 and below 2^32.
	 */
	uint32(value: number, tag: number): void {
		this.#reserve(headBytes);
		this.#varint(value);
		this.#varint(tag);
	}

	/** Writes an integer field. Negative values are written as 64-bit two's complement. */
	int32(value: number, tag: number): void {
		if (value < 0) {
			this.int64(BigInt(value), tag);
		} else {
			this.uint32(value, tag);
		}
	}

	/** Writes an integer field. Negative values are written as two's complement. */
	int64(value: bigint, tag: number): void {
		this.#reserve(2 * headBytes);
		const digits: number[] = [];
		let rest = BigInt.asUintN(64, value);
		while (rest > 0x7fn) {
			digits.push(Number(rest & 0x7fn) | 0x80);
			rest >>= 7n;
		}
		digits.push(Number(rest));
		this.#start -= digits.length;
		this.#buffer.set(digits, this.#start);
		this.#varint(tag);
	}

	/**
	 * Writes the length and the tag of a nested message whose content has just been written.
	 *
	 * @param end - what `length` was before the content was written.
	 */
	lengthSince(end: number, tag: number): void {
		const size = this.length - end;
		this.#reserve(headBytes);
		this.#varint(size);
		this.#varint(tag);
	}

	/** Writes a number from 0 to 2^32 - 1, for which the caller has reserved room. */
	#varint(value: number): void {
		if (value < 0x80) {
			this.#buffer[--this.#start] = value;
			return;
		}
		let rest = value >>> 0;
		this.#start -= Math.ceil((32 - Math.clz32(rest)) / 7);
		let at = this.#start;
		while (rest > 0x7f) {
			this.#buffer[at++] = (rest & 0x7f) | 0x80;
			rest >>>= 7;
		}
		this.#buffer[at] = rest;
	}

	/** Writes a string of ASCII characters. Returns false, and writes nothing, if the string has others. */
	#ascii(value: string): boolean {
		const buffer = this.#buffer;
		let at = this.#start;
		for (let index = value.length - 1; index >= 0; index -= 1) {
			const code = value.charCodeAt(index);
			if (code > 0x7f) {
				return false;
			}
			buffer[--at] = code;
		}
		this.#start = at;
		return true;
	}

	/** Makes room for at least that many bytes before those that were written. */
	#reserve(bytes: number): void {
		if (bytes > this.#start) {
			const { length } = this;
			const larger = Buffer.allocUnsafeSlow(2 * (length + bytes));
			larger.set(this.#buffer.subarray(this.#start), larger.length - length);
			this.#buffer = larger;
			this.#start = larger.length - length;
		}
	}
}

const initialBytes = 16 * 1_024;

/** A buffer that has become larger than this is not kept for the next message. */
const keptBytes = 256 * 1_024;

/** The most bytes that two numbers of 32 bits need: a tag and a length, or a tag and a value. */
const headBytes = 10;

/** For strings of up to this many characters, a loop is faster than a call of Node's native code. */
const longestAsciiLoop = 64;
