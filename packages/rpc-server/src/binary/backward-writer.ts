/**
 * Writes the wire format of Protocol Buffers from the end to the start, so that the length of a nested message is known
 * when it is written: after its content.
 */
export class BackwardWriter {
	#buffer = Buffer.allocUnsafeSlow(initialBytes);
	/** The offset of the first written byte. */
	#start = initialBytes;

	/** The number of bytes written. */
	get length(): number {
		return this.#buffer.length - this.#start;
	}

	/** A copy of all written bytes, preceded by `zeros` zero bytes. The writer is empty afterwards. */
	finish(zeros: number): Uint8Array<ArrayBuffer> {
		const bytes = new Uint8Array(zeros + this.length);
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

	/** @param value - at least 0 and below 2^32. */
	varint32(value: number): void {
		this.#reserve(5);
		let rest = value >>> 0;
		const size = rest < 0x80 ? 1 : Math.ceil((32 - Math.clz32(rest)) / 7);
		this.#start -= size;
		let at = this.#start;
		while (rest > 0x7f) {
			this.#buffer[at++] = (rest & 0x7f) | 0x80;
			rest >>>= 7;
		}
		this.#buffer[at] = rest;
	}

	/** Negative values are written as 64-bit two's complement. */
	varint64(value: bigint): void {
		this.#reserve(10);
		const digits: number[] = [];
		let rest = BigInt.asUintN(64, value);
		while (rest > 0x7fn) {
			digits.push(Number(rest & 0x7fn) | 0x80);
			rest >>= 7n;
		}
		digits.push(Number(rest));
		this.#start -= digits.length;
		this.#buffer.set(digits, this.#start);
	}

	/** The bytes, without their length. */
	bytes(value: Uint8Array): void {
		this.#reserve(value.byteLength);
		this.#start -= value.byteLength;
		this.#buffer.set(value, this.#start);
	}

	/** A string as UTF-8, without its length. */
	string(value: string): void {
		this.#reserve(value.length * 3);
		if (value.length > longestAsciiLoop || !this.#ascii(value)) {
			const size = Buffer.byteLength(value);
			this.#start -= size;
			this.#buffer.write(value, this.#start);
		}
	}

	/** Returns false, and writes nothing, if the string has non-ASCII characters. */
	#ascii(value: string): boolean {
		let at = this.#start;
		for (let index = value.length - 1; index >= 0; index -= 1) {
			const code = value.charCodeAt(index);
			if (code > 0x7f) {
				return false;
			}
			this.#buffer[--at] = code;
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

/** Up to this length, a loop is faster than a call into the runtime. */
const longestAsciiLoop = 64;
