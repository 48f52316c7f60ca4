import type { Fields } from "../http2.ts";
import { initialTableSize } from "./decoder.ts";
import { DynamicTable, fieldSize } from "./dynamic-table.ts";
import { encodeHuffman, huffmanLength } from "./huffman.ts";
import { firstDynamicIndex, staticTable } from "./static-table.ts";

/** Fields whose values must not be compared with guesses: they never enter a table, RFC 7541, section 7.1. */
const neverIndexed = new Set(["authorization", "proxy-authorization", "set-cookie"]);

/** How many blocks are remembered. */
const cachedBlocks = 8;

/** How many fields are remembered as sent once. */
const maxSentOnce = 64;

interface CachedBlock {
	readonly generation: number;
	readonly status: number;
	readonly fields: Fields;
	readonly bytes: Buffer;
}

const staticFields = new Map<string, number>();
const staticNames = new Map<string, number>();
for (let index = firstDynamicIndex - 1; index > 0; index--) {
	const name = staticTable[index * 2 - 2] ?? "";
	staticFields.set(keyOf(name, staticTable[index * 2 - 1] ?? ""), index);
	staticNames.set(name, index);
}

function keyOf(name: string, value: string): string {
	return `${name}\0${value}`;
}

/**
 * Encodes the header blocks of one direction of a connection, in the order in which they are sent.
 *
 * A field enters the dynamic table when it is sent for the second time, so that values that are sent once do not
 * evict those that repeat. A block that consists of indexes only, and of literals that are never indexed, stays the same
 * until the table changes: it is remembered and not encoded again.
 */
export class HpackEncoder {
	readonly #table: DynamicTable;
	/** The number of the newest entry, by field and by name. */
	readonly #fields = new Map<string, number>();
	readonly #names = new Map<string, number>();
	readonly #sentOnce = new Set<string>();
	readonly #cache: CachedBlock[] = [];
	#nextCached = 0;
	/** The smallest and the last size that the peer has not been notified of; undefined if it knows. */
	#pendingSizes: { readonly smallest: number; readonly last: number } | undefined;
	#bytes: Buffer = Buffer.allocUnsafeSlow(256);
	#length = 0;
	#isRepeatable = true;

	constructor() {
		this.#table = new DynamicTable(initialTableSize, (name, value, number) => {
			forget(this.#fields, keyOf(name, value), number);
			forget(this.#names, name, number);
		});
	}

	/** Bytes of the dynamic table. */
	get tableSize(): number {
		return this.#table.size;
	}

	/** Sets the peer's SETTINGS_HEADER_TABLE_SIZE, of which at most 4096 bytes are used. */
	setPeerLimit(bytes: number): void {
		const size = Math.min(bytes, initialTableSize);
		if (size === this.#table.maxSize) {
			return;
		}
		const smallest = Math.min(size, this.#pendingSizes?.smallest ?? size);
		this.#pendingSizes = { smallest, last: size };
		this.#table.resize(size);
	}

	/** Whether a block was remembered: its fields have been checked before. */
	isCached(status: number, fields: Fields): boolean {
		return this.#cached(status, fields) !== undefined;
	}

	/**
	 * The block of a response with this status, or of trailers if it is 0. The bytes are valid until the next call.
	 */
	encode(status: number, fields: Fields): Buffer {
		return this.#cached(status, fields) ?? this.#encode(status, fields);
	}

	#cached(status: number, fields: Fields): Buffer | undefined {
		const { generation } = this.#table;
		for (const entry of this.#cache) {
			if (
				entry.generation === generation &&
				entry.status === status &&
				areEqual(entry.fields, fields)
			) {
				return entry.bytes;
			}
		}
		return undefined;
	}

	#encode(status: number, fields: Fields): Buffer {
		this.#length = 0;
		this.#isRepeatable = true;
		const { generation } = this.#table;
		this.#sizeUpdates();
		if (status !== 0) {
			this.#field(":status", String(status));
		}
		for (let index = 0; index < fields.length; index += 2) {
			this.#field(fields[index] ?? "", fields[index + 1] ?? "");
		}
		const bytes = this.#bytes.subarray(0, this.#length);
		if (this.#isRepeatable && generation === this.#table.generation) {
			this.#cache[this.#nextCached] = {
				generation,
				status,
				fields: [...fields],
				bytes: Buffer.from(bytes),
			};
			this.#nextCached = (this.#nextCached + 1) % cachedBlocks;
		}
		return bytes;
	}

	#sizeUpdates(): void {
		if (this.#pendingSizes !== undefined) {
			const { smallest, last } = this.#pendingSizes;
			this.#pendingSizes = undefined;
			this.#isRepeatable = false;
			if (smallest < last) {
				this.#integer(0x20, 0x1f, smallest);
			}
			this.#integer(0x20, 0x1f, last);
		}
	}

	#field(name: string, value: string): void {
		const key = keyOf(name, value);
		const fieldIndex = this.#indexOf(staticFields.get(key), this.#fields.get(key));
		if (fieldIndex !== 0) {
			this.#integer(0x80, 0x7f, fieldIndex);
			return;
		}
		const nameIndex = this.#indexOf(staticNames.get(name), this.#names.get(name));
		if (neverIndexed.has(name)) {
			this.#literal(0x10, 0x0f, nameIndex, name, value);
		} else if (fieldSize(name, value) > this.#table.maxSize / 4) {
			this.#literal(0, 0x0f, nameIndex, name, value);
		} else if (this.#sentOnce.delete(key)) {
			this.#literal(0x40, 0x3f, nameIndex, name, value);
			const number = this.#table.inserted;
			this.#table.insert(name, value);
			this.#fields.set(key, number);
			this.#names.set(name, number);
		} else {
			this.#isRepeatable = false;
			if (this.#sentOnce.size >= maxSentOnce) {
				this.#sentOnce.clear();
			}
			this.#sentOnce.add(key);
			this.#literal(0, 0x0f, nameIndex, name, value);
		}
	}

	/** 0 if the field is in neither table. */
	#indexOf(staticIndex: number | undefined, number: number | undefined): number {
		if (staticIndex !== undefined) {
			return staticIndex;
		}
		return number === undefined ? 0 : firstDynamicIndex + this.#table.inserted - 1 - number;
	}

	#literal(pattern: number, prefix: number, nameIndex: number, name: string, value: string): void {
		this.#integer(pattern, prefix, nameIndex);
		if (nameIndex === 0) {
			this.#text(name);
		}
		this.#text(value);
	}

	#text(text: string): void {
		const coded = huffmanLength(text);
		if (coded < text.length) {
			this.#integer(0x80, 0x7f, coded);
			this.#reserve(coded);
			this.#length = encodeHuffman(text, this.#bytes, this.#length);
		} else {
			this.#integer(0, 0x7f, text.length);
			this.#reserve(text.length);
			this.#length += this.#bytes.write(text, this.#length, "latin1");
		}
	}

	#integer(pattern: number, prefix: number, value: number): void {
		this.#reserve(6);
		if (value < prefix) {
			this.#bytes[this.#length++] = pattern | value;
			return;
		}
		this.#bytes[this.#length++] = pattern | prefix;
		let rest = value - prefix;
		while (rest >= 0x80) {
			this.#bytes[this.#length++] = 0x80 | (rest & 0x7f);
			rest >>>= 7;
		}
		this.#bytes[this.#length++] = rest;
	}

	#reserve(byteCount: number): void {
		if (this.#length + byteCount > this.#bytes.length) {
			const larger = Buffer.allocUnsafeSlow((this.#length + byteCount) * 2);
			this.#bytes.copy(larger, 0, 0, this.#length);
			this.#bytes = larger;
		}
	}
}

function forget(numbers: Map<string, number>, key: string, evicted: number): void {
	if (numbers.get(key) === evicted) {
		numbers.delete(key);
	}
}

function areEqual(left: Fields, right: Fields): boolean {
	if (left.length !== right.length) {
		return false;
	}
	for (let index = 0; index < left.length; index++) {
		if (left[index] !== right[index]) {
			return false;
		}
	}
	return true;
}
