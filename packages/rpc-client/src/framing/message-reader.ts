import { Code, ConnectError } from "@connectrpc/connect";
import { prefixBytes } from "./encode-message.ts";

/**
 * Reassembles messages from the chunks of a response, wherever those were cut:
 *
 * ```
 *   chunks    ├──────────────┼──────────┼──────┤
 *   messages  [prefix│bytes][prefix│bytes     ]
 *                   ▲ #offset in the first chunk
 * ```
 *
 * Nothing is allocated for a message before all of its bytes have arrived, so that a prefix with a large length
 * costs nothing.
 */
export class MessageReader {
	readonly #maxBytes: number;
	#chunks: Buffer[] = [];
	#offset = 0;
	/** The number of bytes that were pushed and not yet read. */
	#available = 0;
	/** The length of the message whose prefix has been read. */
	#length: number | undefined;

	/** @param maxBytes - the maximum size of a message. */
	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	/** Whether there are unread bytes, or a message of which only a part was read. */
	get hasRest(): boolean {
		return this.#available > 0 || this.#length !== undefined;
	}

	push(chunk: Buffer): void {
		if (chunk.length > 0) {
			this.#chunks.push(chunk);
			this.#available += chunk.length;
		}
	}

	/**
	 * The bytes of the next message, as a copy: a chunk may be part of a large buffer, which messages with
	 * bytes fields would retain. `undefined` if the message has not arrived completely.
	 *
	 * @throws ConnectError ResourceExhausted if the message is too large, Internal if its prefix is malformed.
	 */
	next(): Uint8Array | undefined {
		if (this.#length === undefined) {
			if (this.#available < prefixBytes) {
				return undefined;
			}
			this.#length = this.#readPrefix();
		}
		if (this.#available < this.#length) {
			return undefined;
		}
		const bytes = this.#take(this.#length);
		this.#length = undefined;
		return bytes;
	}

	/** Drops all unread bytes. */
	clear(): void {
		this.#chunks = [];
		this.#offset = 0;
		this.#available = 0;
		this.#length = undefined;
	}

	#readPrefix(): number {
		const flags = this.#takeByte();
		let length = 0;
		for (let byte = 1; byte < prefixBytes; byte++) {
			length = length * 256 + this.#takeByte();
		}
		if (flags !== 0) {
			throw new ConnectError(
				flags === 1
					? "protocol error: received compressed message, but no compression was offered"
					: `protocol error: received message with unknown flags ${flags}`,
				Code.Internal,
			);
		}
		if (length > this.#maxBytes) {
			throw new ConnectError(
				`message size ${length} is larger than configured readMaxBytes ${this.#maxBytes}`,
				Code.ResourceExhausted,
			);
		}
		return length;
	}

	/** At least one byte must be available. */
	#takeByte(): number {
		const byte = this.#chunks[0]?.[this.#offset] ?? 0;
		this.#advance(1);
		return byte;
	}

	/** At least `length` bytes must be available. */
	#take(length: number): Uint8Array {
		const bytes = new Uint8Array(length);
		let taken = 0;
		while (taken < length) {
			const copied = this.#chunks[0]?.copy(bytes, taken, this.#offset) ?? 0;
			taken += copied;
			this.#advance(copied);
		}
		return bytes;
	}

	/** Skips bytes of the first chunk. */
	#advance(length: number): void {
		this.#available -= length;
		this.#offset += length;
		if (this.#offset === this.#chunks[0]?.length) {
			this.#chunks.shift();
			this.#offset = 0;
		}
	}
}
