import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
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

/** Bytes that arrive in parts. */
class Parts {
	#first: Uint8Array | undefined;
	#rest: Uint8Array[] | undefined;
	length = 0;

	add(chunk: Uint8Array): void {
		this.length += chunk.byteLength;
		if (this.#first === undefined) {
			this.#first = chunk;
		} else {
			this.#rest ??= [];
			this.#rest.push(chunk);
		}
	}

	/** All bytes. They may share their memory with other requests. */
	get all(): Uint8Array {
		if (this.#rest !== undefined) {
			this.#first = Buffer.concat([this.#first ?? empty, ...this.#rest]);
			this.#rest = undefined;
		}
		return this.#first ?? empty;
	}
}

const empty = new Uint8Array();

/** Reads a message that is the whole body. */
export class WholeBodyReader implements RequestReader {
	readonly #options: RequestReaderOptions;
	readonly #parts = new Parts();
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
		this.#parts.add(chunk);
		const { length } = this.#parts;
		if (length > this.#length) {
			throw wrongLength(this.#length, length);
		}
		if (length > this.#options.readMaxBytes) {
			throw tooLarge(this.#options.readMaxBytes, undefined);
		}
	}

	finish(): Message {
		const { length, all } = this.#parts;
		if (length < this.#length) {
			throw wrongLength(this.#length, length);
		}
		return this.#options.codec.decode(all);
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

/** Reads a message in an envelope. */
export class EnvelopeReader implements RequestReader {
	readonly #options: EnvelopeReaderOptions;
	readonly #parts = new Parts();
	/** The offset of the first envelope whose length was not checked. */
	#checked = 0;
	/** The number of messages before that offset, and the bytes of envelopes that are ignored. */
	#messages = 0;
	#ignoredBytes = 0;

	constructor(options: EnvelopeReaderOptions) {
		this.#options = options;
	}

	add(chunk: Uint8Array): void {
		this.#parts.add(chunk);
		const { length } = this.#parts;
		const { readMaxBytes } = this.#options;
		while (length >= this.#checked + envelopeHeadBytes && this.#messages < 2) {
			const size = sizeAt(this.#parts.all, this.#checked);
			if (size > readMaxBytes) {
				throw tooLarge(readMaxBytes, size);
			}
			if (this.#endsStream(this.#parts.all[this.#checked] ?? 0)) {
				this.#ignoredBytes += envelopeHeadBytes + size;
			} else {
				this.#messages += 1;
			}
			this.#checked += envelopeHeadBytes + size;
		}
		if (this.#ignoredBytes > readMaxBytes + envelopeHeadBytes) {
			throw tooLarge(readMaxBytes, undefined);
		}
		if (this.#messages > 1 && length >= this.#checked) {
			// There already is one too many, however many follow.
			this.finish();
		}
	}

	finish(): Message {
		const { all } = this.#parts;
		let message: Message | undefined;
		let offset = 0;
		while (all.byteLength - offset >= envelopeHeadBytes) {
			const end = offset + envelopeHeadBytes + sizeAt(all, offset);
			if (end > all.byteLength) {
				break;
			}
			const next = this.#read(all[offset] ?? 0, all.subarray(offset + envelopeHeadBytes, end));
			if (message !== undefined && next !== undefined) {
				throw this.#protocolError("received extra");
			}
			message ??= next;
			offset = end;
		}
		const rest = all.byteLength - offset;
		// As in Connect, the head of an envelope alone does not count.
		if (rest > 0 && rest !== envelopeHeadBytes) {
			throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
		}
		if (message === undefined) {
			throw this.#protocolError("missing");
		}
		return message;
	}

	/** The message in an envelope; `undefined` if the envelope contains no message. */
	#read(flags: number, data: Uint8Array): Message | undefined {
		if ((flags & compressedFlag) !== 0) {
			throw new ConnectError(
				"received compressed envelope, but do not know how to decompress",
				Code.Internal,
			);
		}
		return this.#endsStream(flags) ? undefined : this.#options.codec.decode(data);
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

/** The size of the message in the envelope at an offset, of which at least the head has arrived. */
function sizeAt(bytes: Uint8Array, offset: number): number {
	const high = (bytes[offset + 1] ?? 0) * 2 ** 24;
	return (
		high +
		(((bytes[offset + 2] ?? 0) << 16) | ((bytes[offset + 3] ?? 0) << 8) | (bytes[offset + 4] ?? 0))
	);
}
