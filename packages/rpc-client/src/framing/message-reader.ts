import { Code, ConnectError } from "@connectrpc/connect";
import { ByteQueue } from "@plinth/runtime";
import { prefixBytes } from "./encode-message.ts";

/**
 * Reassembles messages from the chunks of a response, wherever those were cut:
 *
 * ```
 *   chunks    ├──────────────┼──────────┼──────┤
 *   messages  [prefix│bytes][prefix│bytes     ]
 * ```
 *
 * Nothing is allocated for a message before all of its bytes have arrived, so that a prefix with a large length
 * costs nothing. Messages are copies: a chunk may be part of a large buffer, which messages with bytes fields would retain.
 * Chunks are copied only if they are kept, as far as they would retain much more than their bytes.
 */
export class MessageReader {
	readonly #maxBytes: number;
	/** The bytes that were kept and not yet read. */
	readonly #bytes = new ByteQueue();
	/** The length of the message whose prefix has been read. */
	#length: number | undefined;

	/** @param maxBytes - the maximum size of a message. */
	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	/** Whether there are unread bytes, or a message of which only a part was read. */
	get hasRest(): boolean {
		return this.#bytes.length > 0 || this.#length !== undefined;
	}

	/** Keeps a chunk for `next`. */
	keep(chunk: Uint8Array): void {
		this.#bytes.push(chunk);
	}

	/**
	 * Takes a chunk. Returns the bytes of the next message, and keeps the rest. `undefined` if the message has not arrived
	 * completely.
	 *
	 * @throws ConnectError as `next` does.
	 */
	receive(chunk: Buffer): Uint8Array | undefined {
		if (this.hasRest || chunk.length < prefixBytes) {
			this.keep(chunk);
			return this.next();
		}
		const length = this.#checked(chunk[0] ?? 0, chunk.readUInt32BE(1));
		const end = prefixBytes + length;
		if (chunk.length < end) {
			this.keep(chunk);
			return this.next();
		}
		if (end < chunk.length) {
			this.keep(chunk.subarray(end));
		}
		const bytes = new Uint8Array(length);
		chunk.copy(bytes, 0, prefixBytes, end);
		return bytes;
	}

	/**
	 * The bytes of the next message; `undefined` if it has not arrived completely.
	 *
	 * @throws ConnectError ResourceExhausted if the message is too large, Internal if its prefix is malformed.
	 */
	next(): Uint8Array | undefined {
		if (this.#length === undefined) {
			if (this.#bytes.length < prefixBytes) {
				return undefined;
			}
			this.#length = this.#takePrefix();
		}
		if (this.#bytes.length < this.#length) {
			return undefined;
		}
		const bytes = this.#bytes.take(this.#length);
		this.#length = undefined;
		return bytes;
	}

	/** Drops all unread bytes. */
	clear(): void {
		this.#bytes.clear();
		this.#length = undefined;
	}

	/** Returns the length of the message. */
	#takePrefix(): number {
		const flags = this.#bytes.takeByte();
		let length = 0;
		for (let byte = 1; byte < prefixBytes; byte++) {
			length = length * 256 + this.#bytes.takeByte();
		}
		return this.#checked(flags, length);
	}

	/** The length of a message with this prefix. */
	#checked(flags: number, length: number): number {
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
}
