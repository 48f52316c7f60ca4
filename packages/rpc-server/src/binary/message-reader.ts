/** Thrown to leave bytes to `fromBinary`. Shared, since creating an error with its stack trace would cost more. */
export const notCovered = new Error("only fromBinary can decode the message");

/**
 * Reads the wire format of Protocol Buffers. Whatever is malformed, or written in a way that common encoders don't use,
 * throws `notCovered`.
 */
export class MessageReader {
	#bytes: Uint8Array = empty;
	/** The offset of the next byte. */
	position = 0;
	/**
	 * Short strings by their hashes. Most strings of requests repeat, such as types and tenancies: comparing one costs less
	 * than creating it, and resources that are stored share it.
	 */
	readonly #strings: string[] = new Array<string>(keptStrings).fill("");

	/** Reads these bytes from now on. Returns the offset of their end. */
	begin(bytes: Uint8Array): number {
		this.#bytes = bytes;
		this.position = 0;
		return bytes.byteLength;
	}

	/** Drops the reference to the bytes. */
	end(): void {
		this.#bytes = empty;
	}

	/** An unsigned integer of at most 32 bits. */
	varint32(): number {
		const bytes = this.#bytes;
		const first = bytes[this.position] ?? notAByte;
		if (first < 0x80) {
			this.position += 1;
			return first;
		}
		let value = first & 0x7f;
		for (let index = 1; index < 5; index += 1) {
			const byte = bytes[this.position + index] ?? notAByte;
			value |= (byte & 0x7f) << (7 * index);
			if (byte < 0x80) {
				if (index === 4 && byte > 0x0f) {
					break;
				}
				this.position += index + 1;
				return value >>> 0;
			}
		}
		throw notCovered;
	}

	/** An integer of at most 49 bits. Larger and negative ones, which are rare, are left to `fromBinary`. */
	varint49(): bigint {
		let value = 0;
		for (let index = 0; index < 7; index += 1) {
			const byte = this.#bytes[this.position + index] ?? notAByte;
			value += (byte & 0x7f) * 2 ** (7 * index);
			if (byte < 0x80) {
				this.position += index + 1;
				return BigInt(value);
			}
		}
		throw notCovered;
	}

	/** The offset of the end of a value that begins with its length, and ends at `end` or before. */
	endOfValue(end: number): number {
		const length = this.varint32();
		const valueEnd = this.position + length;
		if (valueEnd > end) {
			throw notCovered;
		}
		return valueEnd;
	}

	/** A copy of the bytes up to an offset. */
	bytesTo(end: number): Uint8Array {
		const start = this.position;
		this.position = end;
		const copy = new Uint8Array(end - start);
		copy.set(this.#bytes.subarray(start, end));
		return copy;
	}

	/** The text up to an offset. */
	stringTo(end: number): string {
		const bytes = this.#bytes;
		const start = this.position;
		const length = end - start;
		if (length > longestKeptString) {
			return this.#decodeTo(end);
		}
		const first = bytes[start] ?? 0;
		const last = bytes[end - 1] ?? 0;
		const middle = bytes[start + (length >>> 1)] ?? 0;
		const slot = (first + 31 * (last + 31 * (middle + 31 * length))) & (keptStrings - 1);
		const known = this.#strings[slot] ?? "";
		if (known.length === length && isAt(known, bytes, start)) {
			this.position = end;
			return known;
		}
		const codes = new Array<number>(length);
		for (let index = 0; index < length; index += 1) {
			const byte = bytes[start + index] ?? notAByte;
			if (byte > 0x7f) {
				return this.#decodeTo(end);
			}
			codes[index] = byte;
		}
		this.position = end;
		const text = String.fromCharCode.apply(undefined, codes);
		this.#strings[slot] = text;
		return text;
	}

	#decodeTo(end: number): string {
		try {
			const text = utf8.decode(this.#bytes.subarray(this.position, end));
			this.position = end;
			return text;
		} catch {
			throw notCovered;
		}
	}
}

function isAt(text: string, bytes: Uint8Array, start: number): boolean {
	for (let index = 0; index < text.length; index += 1) {
		if (text.charCodeAt(index) !== bytes[start + index]) {
			return false;
		}
	}
	return true;
}

const empty = new Uint8Array();

/** In place of a byte after the end: no varint ends with it, and it is not ASCII. */
const notAByte = 0xff;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A power of two. */
const keptStrings = 1_024;
const longestKeptString = 40;
