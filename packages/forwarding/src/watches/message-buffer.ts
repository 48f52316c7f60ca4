import type { KeptBytes } from "../call/kept-bytes.ts";

const prefixBytes = 5;

/** A piece of a body: a whole message, or a part of one that is too large to be held. */
export type Piece =
	| {
			readonly kind: "message";
			readonly flags: number;
			/** The message with its prefix. */
			readonly bytes: Uint8Array;
	  }
	| { readonly kind: "part"; readonly bytes: Uint8Array };

/** The message of a whole piece, without its prefix. */
export function messageOf({ bytes }: { readonly bytes: Uint8Array }): Uint8Array {
	return bytes.subarray(prefixBytes);
}

/**
 * Divides the chunks of a body into messages. The beginning of a message is held until the rest has come, so that a body
 * that is cut off has been passed on up to the end of a message. A message that is larger than the limit, or for which the
 * memory of all calls has no room, comes in parts, at once.
 *
 * Invariant: the pieces are the bytes of the chunks, in their order, but for what is held.
 */
export class MessageBuffer {
	readonly #messageLimit: number;
	readonly #memory: Pick<KeptBytes, "take" | "give">;
	/** A prefix that is not complete. */
	#prefix: Uint8Array | undefined;
	/** A message that is not complete, and how much of it has come. */
	#message: Uint8Array | undefined;
	#filled = 0;
	/** Bytes that are missing of a message that comes in parts. */
	#missing = 0;

	/** @param messageLimit - the size of the largest message that is held, in bytes. */
	constructor(messageLimit: number, memory: Pick<KeptBytes, "take" | "give">) {
		this.#messageLimit = messageLimit;
		this.#memory = memory;
	}

	/** Whether all pieces so far are complete messages. */
	get isAtBoundary(): boolean {
		return this.#missing === 0;
	}

	/** The pieces that are complete with the next chunk. */
	add(chunk: Uint8Array): readonly Piece[] {
		const pieces: Piece[] = [];
		let rest = chunk;
		while (rest.length > 0) {
			if (this.#missing > 0) {
				const bytes = rest.subarray(0, this.#missing);
				this.#missing -= bytes.length;
				rest = rest.subarray(bytes.length);
				pieces.push({ kind: "part", bytes });
			} else if (this.#message === undefined) {
				rest = this.#begin(rest, pieces);
			} else {
				rest = this.#fill(this.#message, rest, pieces);
			}
		}
		return pieces;
	}

	/** Drops what is held. */
	release(): void {
		this.#memory.give(this.#message?.length ?? 0);
		this.#prefix = undefined;
		this.#message = undefined;
		this.#filled = 0;
		this.#missing = 0;
	}

	/** Returns what comes after the message, if it is complete. */
	#begin(chunk: Uint8Array, pieces: Piece[]): Uint8Array {
		const bytes = this.#prefix === undefined ? chunk : Buffer.concat([this.#prefix, chunk]);
		this.#prefix = undefined;
		if (bytes.length < prefixBytes) {
			// A copy: the chunk may be part of much more.
			this.#prefix = new Uint8Array(bytes);
			return nothing;
		}
		const size = prefixBytes + new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
		if (bytes.length >= size) {
			pieces.push(wholeMessage(bytes.subarray(0, size)));
			return bytes.subarray(size);
		}
		if (size > this.#messageLimit || !this.#memory.take(size)) {
			this.#missing = size;
			return bytes;
		}
		this.#message = Buffer.allocUnsafe(size);
		return this.#fill(this.#message, bytes, pieces);
	}

	#fill(message: Uint8Array, chunk: Uint8Array, pieces: Piece[]): Uint8Array {
		const bytes = chunk.subarray(0, message.length - this.#filled);
		message.set(bytes, this.#filled);
		this.#filled += bytes.length;
		if (this.#filled === message.length) {
			this.release();
			pieces.push(wholeMessage(message));
		}
		return chunk.subarray(bytes.length);
	}
}

const nothing = new Uint8Array();

function wholeMessage(bytes: Uint8Array): Piece {
	return { kind: "message", flags: bytes[0] ?? 0, bytes };
}
