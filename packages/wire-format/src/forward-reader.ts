import { notCovered } from "./not-covered.ts";

/** Strings of up to this many bytes are remembered, such as the names of types, tenancies and resources. */
const rememberedBytes = 32;

/** The number of slots for remembered strings: a power of 2. */
const rememberedStrings = 4_096;

const noBytes = Buffer.alloc(0);

/** Like the decoder of the library, it treats a leading U+FEFF as text, not as a byte-order mark. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads the wire format of Protocol Buffers, as common encoders write it. For everything else, rare or malformed, its
 * methods throw `notCovered`, so that the message is left to the library. Methods that read a value with a length throw
 * it also if the value would end after `limit`, the end of the message or map entry that contains it. All offsets are in
 * bytes.
 *
 * Clients send the same short strings again and again. A table therefore has, for each slot, the last ASCII string whose
 * hash led to that slot. If the bytes of a field are those of the string in their slot, that string is returned. This
 * saves creating a string, and computing V8's own hash of the string when it is looked up in a map.
 */
export class ForwardReader {
	#bytes: Buffer = noBytes;
	/** The offset of the next byte. */
	position = 0;
	readonly #strings: string[] = new Array(rememberedStrings).fill("");

	/** Begins to read a message, at its first byte. */
	start(bytes: Uint8Array): void {
		this.#bytes = Buffer.isBuffer(bytes)
			? bytes
			: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		this.position = 0;
	}

	/** Releases the bytes. */
	stop(): void {
		this.#bytes = noBytes;
	}

	/** Reads a number from 0 to 2^32 - 1: a tag, a length or a value. */
	uint32(): number {
		const bytes = this.#bytes;
		let byte = bytes[this.position++] ?? 0x80;
		if (byte < 0x80) {
			return byte;
		}
		let value = byte & 0x7f;
		for (let shift = 7; shift < 28; shift += 7) {
			byte = bytes[this.position++] ?? 0x80;
			value |= (byte & 0x7f) << shift;
			if (byte < 0x80) {
				return value;
			}
		}
		byte = bytes[this.position++] ?? 0x80;
		if (byte > 0x0f) {
			throw notCovered;
		}
		return (value | (byte << 28)) >>> 0;
	}

	/** Reads a number from 0 to 2^31 - 1. */
	int32(): number {
		const value = this.uint32();
		if (value > 0x7fff_ffff) {
			throw notCovered;
		}
		return value;
	}

	/** Reads a `bool` field. */
	boolean(): boolean {
		const value = this.uint32();
		if (value > 1) {
			throw notCovered;
		}
		return value === 1;
	}

	/** Reads a length, and returns the offset at which the value that follows ends. */
	end(limit: number): number {
		const length = this.uint32();
		const end = this.position + length;
		if (end > limit) {
			throw notCovered;
		}
		return end;
	}

	/** Reads a `bytes` field, as a copy. */
	copy(limit: number): Uint8Array {
		const end = this.end(limit);
		const copy = new Uint8Array(end - this.position);
		copy.set(this.#bytes.subarray(this.position, end));
		this.position = end;
		return copy;
	}

	/** Reads a `bytes` field, as a view of the message's bytes. */
	view(limit: number): Uint8Array {
		const end = this.end(limit);
		const { buffer, byteOffset } = this.#bytes;
		const view = new Uint8Array(buffer, byteOffset + this.position, end - this.position);
		this.position = end;
		return view;
	}

	/** Reads a string field. */
	string(limit: number): string {
		const end = this.end(limit);
		const start = this.position;
		this.position = end;
		const length = end - start;
		if (length > rememberedBytes) {
			return this.#decode(start, end);
		}
		const bytes = this.#bytes;
		let hash = length;
		for (let at = start; at < end; at++) {
			hash = Math.imul(hash, 31) + (bytes[at] ?? 0);
		}
		const slot = (hash ^ (hash >>> 12)) & (rememberedStrings - 1);
		const known = this.#strings[slot] ?? "";
		if (known.length === length && this.#isAt(known, start)) {
			return known;
		}
		const decoded = this.#decode(start, end);
		if (decoded.length === length) {
			this.#strings[slot] = decoded;
		}
		return decoded;
	}

	/** Whether the bytes that begin at an offset are the characters of a string, which is ASCII. */
	#isAt(text: string, start: number): boolean {
		const bytes = this.#bytes;
		for (let index = 0; index < text.length; index++) {
			if (text.charCodeAt(index) !== bytes[start + index]) {
				return false;
			}
		}
		return true;
	}

	#decode(start: number, end: number): string {
		const bytes = this.#bytes;
		for (let at = start; at < end; at++) {
			if ((bytes[at] ?? 0) > 0x7f) {
				return this.#decodeUtf8(start, end);
			}
		}
		return bytes.toString("latin1", start, end);
	}

	#decodeUtf8(start: number, end: number): string {
		try {
			return utf8.decode(this.#bytes.subarray(start, end));
		} catch {
			throw notCovered;
		}
	}
}
