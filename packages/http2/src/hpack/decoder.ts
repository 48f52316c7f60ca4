import { DynamicTable, fieldSize } from "./dynamic-table.ts";
import { HpackError } from "./hpack-error.ts";
import { decodeHuffman } from "./huffman.ts";
import { firstDynamicIndex, staticTable } from "./static-table.ts";

/** The initial table size of both sides, RFC 9113, section 6.5.2. */
export const initialTableSize = 4096;

/** The fields of a header block. */
export interface DecodedBlock {
	/** Name, value, name, value, …; those up to the limit. */
	readonly fields: readonly string[];
	/** The size of all fields, including those that were dropped. */
	readonly listBytes: number;
}

/**
 * Decodes header blocks, RFC 7541. One decoder decodes all blocks of a connection in their order.
 *
 * An error is final: the table may have missed fields.
 */
export class HpackDecoder {
	readonly #table: DynamicTable;
	/** The largest size that the peer may set the table to. */
	#limit = initialTableSize;
	/** The limit was lowered below the table's size: the next block must begin with a size update. */
	#mustShrink = false;
	#bytes: Buffer = Buffer.alloc(0);
	#position = 0;
	#end = 0;

	/** `largestLimit` is the largest limit that will ever be set, in bytes. */
	constructor(largestLimit = initialTableSize) {
		this.#table = new DynamicTable(Math.max(largestLimit, initialTableSize));
		this.#table.resize(initialTableSize);
	}

	/** Changes whenever the meaning of a block may change. */
	get generation(): number {
		return this.#table.generation;
	}

	/** Bytes of the dynamic table. */
	get tableSize(): number {
		return this.#table.size;
	}

	/** Sets the limit to our SETTINGS_HEADER_TABLE_SIZE, once the peer has acknowledged it. */
	setLimit(bytes: number): void {
		this.#limit = bytes;
		this.#mustShrink = this.#table.maxSize > bytes;
	}

	/**
	 * Decodes the block in `bytes` from `start` to `end`. Beyond `maxListBytes`, fields are dropped.
	 *
	 * @throws HpackError if the block is wrong.
	 */
	decode(bytes: Buffer, start: number, end: number, maxListBytes: number): DecodedBlock {
		this.#bytes = bytes;
		this.#position = start;
		this.#end = end;
		this.#updateSize();
		const fields: string[] = [];
		let listBytes = 0;
		while (this.#position < end) {
			const first = bytes[this.#position] ?? 0;
			let name: string;
			let value: string;
			if (first & 0x80) {
				const index = this.#integer(0x7f);
				name = this.#nameAt(index);
				value = this.#valueAt(index);
			} else if (first & 0x40) {
				name = this.#literalName(0x3f);
				value = this.#text();
				this.#table.insert(name, value);
			} else if (first & 0x20) {
				throw new HpackError("a table size update must be at the beginning of a block");
			} else {
				name = this.#literalName(0x0f);
				value = this.#text();
			}
			listBytes += fieldSize(name, value);
			if (listBytes <= maxListBytes) {
				fields.push(name, value);
			}
		}
		return { fields, listBytes };
	}

	#updateSize(): void {
		while (this.#position < this.#end && ((this.#bytes[this.#position] ?? 0) & 0xe0) === 0x20) {
			const size = this.#integer(0x1f);
			if (size > this.#limit) {
				throw new HpackError(`a table of ${size} bytes is above the limit of ${this.#limit}`);
			}
			this.#table.resize(size);
			this.#mustShrink = false;
		}
		if (this.#mustShrink) {
			throw new HpackError("the block must begin with a table size update");
		}
	}

	/** An integer whose first byte has its bits in `prefix`, RFC 7541, section 5.1. */
	#integer(prefix: number): number {
		let value = (this.#bytes[this.#position++] ?? 0) & prefix;
		if (value < prefix) {
			return value;
		}
		// Four bytes: 28 bits, more than any size or index that can be valid here.
		for (let shift = 0; shift < 28; shift += 7) {
			if (this.#position >= this.#end) {
				throw new HpackError("the block ends within an integer");
			}
			const byte = this.#bytes[this.#position++] ?? 0;
			value += (byte & 0x7f) << shift;
			if ((byte & 0x80) === 0) {
				return value;
			}
		}
		throw new HpackError("an integer is too large");
	}

	#literalName(prefix: number): string {
		const index = this.#integer(prefix);
		return index === 0 ? this.#text() : this.#nameAt(index);
	}

	#text(): string {
		if (this.#position >= this.#end) {
			throw new HpackError("the block ends before a string");
		}
		const isHuffman = ((this.#bytes[this.#position] ?? 0) & 0x80) !== 0;
		const length = this.#integer(0x7f);
		const start = this.#position;
		const end = start + length;
		if (end > this.#end) {
			throw new HpackError("the block ends within a string");
		}
		this.#position = end;
		return isHuffman
			? decodeHuffman(this.#bytes, start, end)
			: this.#bytes.toString("latin1", start, end);
	}

	#nameAt(index: number): string {
		const name =
			index < firstDynamicIndex
				? staticTable[index * 2 - 2]
				: this.#table.nameAt(index - firstDynamicIndex);
		if (name === undefined) {
			throw new HpackError(`no field has index ${index}`);
		}
		return name;
	}

	#valueAt(index: number): string {
		return (
			(index < firstDynamicIndex
				? staticTable[index * 2 - 1]
				: this.#table.valueAt(index - firstDynamicIndex)) ?? ""
		);
	}
}
