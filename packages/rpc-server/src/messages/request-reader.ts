import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ByteQueue } from "@plinth/runtime";
import type { Codec } from "./codec.ts";
import { envelopeHeadBytes } from "./envelope.ts";

/** Reads the one message of a request from the parts of its body. */
export interface RequestReader {
	/** @throws ConnectError if the message is too large, before all of it has arrived. */
	add(chunk: Uint8Array): void;
	/** The message of a complete body. @throws ConnectError if there is not exactly one, or if it is malformed. */
	finish(): Message;
}

/** Options of the readers. */
export interface RequestReaderOptions {
	readonly codec: Pick<Codec, "decode">;
	readonly readMaxBytes: number;
}

/** Reads a message that is the whole body. */
export class WholeBodyReader implements RequestReader {
	readonly #options: RequestReaderOptions;
	readonly #bytes = new ByteQueue();
	/** The announced length; NaN if there is none. */
	readonly #length: number;

	/** @throws ConnectError if the announced length is too large. */
	constructor(options: RequestReaderOptions, contentLength: string | undefined) {
		this.#options = options;
		this.#length = lengthOf(contentLength);
		if (this.#length > options.readMaxBytes) {
			throw tooLarge(options.readMaxBytes, this.#length);
		}
	}

	add(chunk: Uint8Array): void {
		this.#bytes.push(chunk);
		const { length } = this.#bytes;
		if (length > this.#length) {
			throw wrongLength(this.#length, length);
		}
		if (length > this.#options.readMaxBytes) {
			throw tooLarge(this.#options.readMaxBytes, undefined);
		}
	}

	finish(): Message {
		const { length } = this.#bytes;
		if (length < this.#length) {
			throw wrongLength(this.#length, length);
		}
		return this.#options.codec.decode(this.#bytes.join());
	}
}

/** The announced length, or NaN for anything but a positive number. */
function lengthOf(contentLength: string | undefined): number {
	const length = contentLength === undefined ? Number.NaN : Number.parseInt(contentLength, 10);
	return Number.isSafeInteger(length) && length >= 0 ? length : Number.NaN;
}

function wrongLength(promised: number, received: number): ConnectError {
	return new ConnectError(
		`protocol error: promised ${promised} bytes, received ${received}`,
		Code.InvalidArgument,
	);
}

function tooLarge(limit: number, length: number | undefined): ConnectError {
	const size = length === undefined ? "message size is" : `message size ${length} is`;
	return new ConnectError(
		`${size} larger than configured readMaxBytes ${limit}`,
		Code.ResourceExhausted,
	);
}

/** Options of `EnvelopeReader`. */
export interface EnvelopeReaderOptions extends RequestReaderOptions {
	readonly methodKind: "unary" | "server-streaming";
	/** The flag of envelopes that end a stream. They are ignored in requests. */
	readonly endFlag: number | undefined;
}

const compressedFlag = 1;

/**
 * Reads a message in an envelope. Follows the heads of envelopes while they arrive, and keeps nothing of those that are
 * ignored:
 *
 * ```
 * ┌ flags ┬ size ──────┬ message ───────────┬ flags ┬ …
 * │ 1     │ 4          │ size               │ 1     │
 * └───────┴────────────┴────────────────────┴───────┴ …
 * ```
 */
export class EnvelopeReader implements RequestReader {
	readonly #options: EnvelopeReaderOptions;
	/** The envelopes that are not ignored. */
	readonly #bytes = new ByteQueue();
	/** The bytes that have arrived of the envelope that is not complete, and what its head says so far. */
	#arrived = 0;
	#size = 0;
	#isIgnored = false;
	/** The number of messages that are complete, and the bytes of envelopes that are ignored. */
	#messages = 0;
	#ignoredBytes = 0;

	constructor(options: EnvelopeReaderOptions) {
		this.#options = options;
	}

	add(chunk: Uint8Array): void {
		/** Where the bytes begin that are not ignored and not kept yet. */
		let from = 0;
		let at = 0;
		while (at < chunk.byteLength) {
			if (this.#arrived < envelopeHeadBytes) {
				this.#addToHead(chunk[at] ?? 0);
				at += 1;
			} else {
				const missing = envelopeHeadBytes + this.#size - this.#arrived;
				const taken = Math.min(missing, chunk.byteLength - at);
				this.#arrived += taken;
				at += taken;
			}
			if (this.#isIgnored) {
				from = at;
			}
			if (this.#arrived >= envelopeHeadBytes && this.#arrived === envelopeHeadBytes + this.#size) {
				this.#bytes.push(chunk.subarray(from, at));
				from = at;
				this.#complete();
			}
		}
		this.#bytes.push(from === 0 ? chunk : chunk.subarray(from));
	}

	finish(): Message {
		const all = this.#bytes.join();
		let message: Message | undefined;
		let offset = 0;
		for (let count = 0; count < this.#messages; count += 1) {
			const end = offset + envelopeHeadBytes + sizeAt(all, offset);
			const next = this.#read(all[offset] ?? 0, all.subarray(offset + envelopeHeadBytes, end));
			if (message !== undefined) {
				throw this.#protocolError("received extra");
			}
			message = next;
			offset = end;
		}
		// As in Connect, the head of an envelope alone does not count.
		if (this.#arrived > 0 && this.#arrived !== envelopeHeadBytes) {
			throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
		}
		if (message === undefined) {
			throw this.#protocolError("missing");
		}
		return message;
	}

	/** Adds a byte to the head of the current envelope. */
	#addToHead(byte: number): void {
		const { readMaxBytes } = this.#options;
		if (this.#arrived === 0) {
			this.#isIgnored = this.#endsStream(byte);
			this.#size = 0;
		} else {
			this.#size = this.#size * 256 + byte;
		}
		this.#arrived += 1;
		if (this.#arrived < envelopeHeadBytes) {
			return;
		}
		if (this.#size > readMaxBytes) {
			throw tooLarge(readMaxBytes, this.#size);
		}
		this.#ignoredBytes += this.#isIgnored ? envelopeHeadBytes + this.#size : 0;
		if (this.#ignoredBytes > readMaxBytes + envelopeHeadBytes) {
			throw tooLarge(readMaxBytes, undefined);
		}
	}

	/** The current envelope is complete. */
	#complete(): void {
		this.#arrived = 0;
		this.#messages += this.#isIgnored ? 0 : 1;
		this.#isIgnored = false;
		if (this.#messages > 1) {
			// There already is one too many, however many follow.
			this.finish();
		}
	}

	/** The message in an envelope. */
	#read(flags: number, data: Uint8Array): Message {
		if ((flags & compressedFlag) !== 0) {
			throw new ConnectError(
				"received compressed envelope, but do not know how to decompress",
				Code.Internal,
			);
		}
		return this.#options.codec.decode(data);
	}

	#endsStream(flags: number): boolean {
		const { endFlag } = this.#options;
		return endFlag !== undefined && (flags & endFlag) === endFlag;
	}

	#protocolError(what: "missing" | "received extra"): ConnectError {
		return new ConnectError(
			`protocol error: ${what} input message for ${this.#options.methodKind} method`,
			Code.Unimplemented,
		);
	}
}

/** The size of the message in the envelope at an offset. */
function sizeAt(bytes: Uint8Array, offset: number): number {
	const high = (bytes[offset + 1] ?? 0) * 2 ** 24;
	return (
		high +
		(((bytes[offset + 2] ?? 0) << 16) | ((bytes[offset + 3] ?? 0) << 8) | (bytes[offset + 4] ?? 0))
	);
}
