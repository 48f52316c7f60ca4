import { ConnectionError, errorCode } from "../error-code.ts";
import type { DecodedBlock, HpackDecoder } from "../hpack/decoder.ts";
import { HpackError } from "../hpack/hpack-error.ts";
import type { Fields, Http2Counters } from "../http2.ts";
import type { MalformedHead } from "../message/malformed-head.ts";

/** A head whose fields are larger than allowed. */
export interface TooLargeHead {
	readonly listBytes: number;
}

/** A decoded block, or what is wrong with it. */
export type Decoded<Head> = Head | MalformedHead | TooLargeHead;

interface CachedHead<Head> {
	readonly block: Buffer;
	readonly generation: number;
	readonly head: Decoded<Head>;
}

/** The number of remembered blocks, and the largest in bytes: at most 8 KiB per connection. */
const cachedHeads = 16;
const maxCachedBytes = 512;

/** A header list that exceeds the limit this many times is an attack. */
const bombFactor = 64;

/**
 * Decodes the header blocks of a connection. Peers send the same heads again: a block that changed nothing in the table
 * keeps its meaning until another block changes it, and is found by its bytes.
 *
 * Invariant: an entry is only used in the generation of the table in which it was decoded, and was decoded without
 * changing it.
 */
export class HeadDecoder<Head extends object> {
	readonly #decoder: HpackDecoder;
	readonly #maxListBytes: number;
	readonly #counters: Http2Counters;
	readonly #parse: (fields: Fields) => Head | MalformedHead;
	readonly #cache: CachedHead<Head>[] = [];
	#nextCached = 0;

	/** @param parse - reads the fields of a head. */
	constructor(
		decoder: HpackDecoder,
		maxListBytes: number,
		counters: Http2Counters,
		parse: (fields: Fields) => Head | MalformedHead,
	) {
		this.#decoder = decoder;
		this.#maxListBytes = maxListBytes;
		this.#counters = counters;
		this.#parse = parse;
	}

	/** @throws ConnectionError if the block is malformed. */
	head(bytes: Buffer, start: number, end: number): Decoded<Head> {
		const length = end - start;
		const { generation } = this.#decoder;
		if (length <= maxCachedBytes) {
			for (const entry of this.#cache) {
				if (
					entry.generation === generation &&
					entry.block.length === length &&
					entry.block.compare(bytes, start, end) === 0
				) {
					this.#counters.cachedHeads++;
					return entry.head;
				}
			}
		}
		const { fields, listBytes } = this.decode(bytes, start, end);
		const head = listBytes > this.#maxListBytes ? { listBytes } : this.#parse(fields);
		if (length <= maxCachedBytes && generation === this.#decoder.generation) {
			const block = Buffer.from(bytes.subarray(start, end));
			this.#cache[this.#nextCached] = { block, generation, head };
			this.#nextCached = (this.#nextCached + 1) % cachedHeads;
		}
		return head;
	}

	/** @throws ConnectionError if the block is malformed. */
	decode(bytes: Buffer, start: number, end: number): DecodedBlock {
		try {
			const decoded = this.#decoder.decode(bytes, start, end, this.#maxListBytes);
			if (decoded.listBytes > this.#maxListBytes * bombFactor) {
				throw new ConnectionError(errorCode.enhanceYourCalm, "a header list is far too large");
			}
			return decoded;
		} catch (error) {
			if (error instanceof HpackError) {
				throw new ConnectionError(errorCode.compressionError, error.message);
			}
			throw error;
		}
	}
}
