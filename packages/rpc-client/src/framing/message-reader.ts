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
	receive(chunk: Uint8Array): Uint8Array | undefined {
		if (this.hasRest || chunk.length < prefixBytes) {
			this.keep(chunk);
			return this.next();
		}
		const end = prefixBytes + this.#lengthOf(chunk);
		if (chunk.length < end) {
			this.keep(chunk);
			return this.next();
		}
		this.keep(chunk.subarray(end));
		return new Uint8Array(chunk.subarray(prefixBytes, end));
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
			this.#length = this.#lengthOf(this.#bytes.take(prefixBytes));
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

	/** The length of the message that begins with this prefix. */
	#lengthOf(prefix: Uint8Array): number {
		const [flags = 0] = prefix;
		let length = 0;
		for (let index = 1; index < prefixBytes; index++) {
			length = length * 256 + (prefix[index] ?? 0);
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
}
