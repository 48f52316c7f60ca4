/**
 * Writes the wire format of Protocol Buffers from the end to the start, so that the length of a nested message is known
 * when it is written: after its content. Fields are written with their tags.
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
	 * A copy of all written bytes, preceded by `zeros` zero bytes. The writer is empty afterwards.
	 *
	 * @param isLasting - whether the copy may be kept for long: otherwise it may share its memory with others.
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

	/** Drops the written bytes and, if it is large, the buffer. */
	clear(): void {
		if (this.#buffer.length > keptBytes) {
			this.#buffer = Buffer.allocUnsafeSlow(initialBytes);
		}
		this.#start = this.#buffer.length;
	}

	/** A string as UTF-8. */
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

	bytes(value: Uint8Array, tag: number): void {
		this.#reserve(value.byteLength + headBytes);
		this.#start -= value.byteLength;
		this.#buffer.set(value, this.#start);
		this.#varint(value.byteLength);
		this.#varint(tag);
	}

	/** @param value - at least 0 and below 2^32. */
	uint32(value: number, tag: number): void {
		this.#reserve(headBytes);
		this.#varint(value);
		this.#varint(tag);
	}

	/** Negative values are written as 64-bit two's complement. */
	int32(value: number, tag: number): void {
		if (value < 0) {
			this.int64(BigInt(value), tag);
		} else {
			this.uint32(value, tag);
		}
	}

	/** Negative values are written as two's complement. */
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

	/** The length of a message that was written since `length` was `end`, and its tag. */
	lengthSince(end: number, tag: number): void {
		const size = this.length - end;
		this.#reserve(headBytes);
		this.#varint(size);
		this.#varint(tag);
	}

	/** Writes a number below 2^32, for which there is room. */
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

	/** Returns false, and writes nothing, if the string has non-ASCII characters. */
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
const keptBytes = 256 * 1_024;

/** The most bytes of a tag and a length, or of a tag and a number of 32 bits. */
const headBytes = 10;

/** Up to this length, a loop is faster than a call into the runtime. */
const longestAsciiLoop = 64;
