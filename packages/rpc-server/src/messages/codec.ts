import {
	create,
	type DescMessage,
	type DescMethod,
	type Message,
	type MessageInitShape,
} from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { compileDecoder } from "../binary/compile-decoder.ts";
import { compileEncoder } from "../binary/compile-encoder.ts";
import { envelope, envelopeHeadBytes, fillHead } from "./envelope.ts";
import { type EncodingKey, sharedEnvelope } from "./shared-encodings.ts";

/** Encodes and decodes the messages of one method in one format, within its limits. */
export interface Codec {
	/**
	 * The message in the bytes. It shares no memory with them: its `bytes` fields may be kept for longer than the chunk
	 * that they were received in.
	 *
	 * @throws ConnectError if the bytes are not a message, or exceed the limit.
	 */
	decode(bytes: Uint8Array): Message;
	/** Completes the output of an implementation to a message. */
	complete(output: MessageInitShape<DescMessage>): Message;
	/** @throws ConnectError if the message can't be encoded, or is too large. */
	encode(message: Message): Uint8Array;
	/** The message in an envelope. @throws ConnectError as `encode`. */
	envelope(message: Message): Uint8Array;
}

/** The codecs of one method. */
export interface Codecs {
	readonly binary: Codec;
	readonly json: Codec;
}

/** Options that determine an encoding, and the limits on messages. */
export interface CodecOptions extends Pick<ConnectRouterOptions, "binaryOptions" | "jsonOptions"> {
	readonly readMaxBytes: number;
	readonly writeMaxBytes: number;
}

const defaultBinary: EncodingKey = {};
const defaultJson: EncodingKey = {};

/** Creates the codecs of a method. */
export function createCodecs(method: DescMethod, options: CodecOptions): Codecs {
	const { binaryOptions, jsonOptions } = options;
	const lookup = createMethodSerializationLookup(method, binaryOptions, jsonOptions, options);
	const codec = (key: EncodingKey, decode: Codec["decode"], encoding: Encoding): Codec => ({
		decode,
		complete: (output) => create(method.output, output),
		encode: encoding.encode,
		envelope: (message) =>
			sharedEnvelope(message, key, encoding.lastingEnvelope) ?? encoding.envelope(message),
	});
	const { parse } = lookup.getI(true);
	const { serialize } = lookup.getO(true);
	return {
		binary:
			binaryOptions === undefined
				? codec(
						defaultBinary,
						compiledDecoding(method.input, parse, options.readMaxBytes),
						compiledEncoding(method.output, serialize, options.writeMaxBytes),
					)
				: codec(binaryOptions, (bytes) => parse(copied(bytes)), encodingOf(serialize)),
		json: codec(
			jsonOptions ?? defaultJson,
			lookup.getI(false).parse,
			encodingOf(lookup.getO(false).serialize),
		),
	};
}

/** Bytes that the compiled decoder can't decode, and those that are too many, are left to `parse`. */
function compiledDecoding(
	schema: DescMessage,
	parse: Codec["decode"],
	readMaxBytes: number,
): Codec["decode"] {
	const compiled = compileDecoder(schema);
	return (bytes) =>
		(bytes.byteLength > readMaxBytes ? undefined : compiled(bytes)) ?? parse(copied(bytes));
}

/** A copy in its own memory: the `bytes` fields of what `fromBinary` decodes are views. */
function copied(bytes: Uint8Array): Uint8Array {
	const copy = new Uint8Array(bytes.byteLength);
	copy.set(bytes);
	return copy;
}

/** How the messages of a codec are encoded. */
interface Encoding {
	encode(message: Message): Uint8Array;
	envelope(message: Message): Uint8Array;
	/** An envelope in memory of its own, which may be kept. */
	lastingEnvelope(message: Message): Uint8Array;
}

function encodingOf(serialize: (message: Message) => Uint8Array): Encoding {
	const toEnvelope = (message: Message) => envelope(0, serialize(message));
	return {
		encode: serialize,
		envelope: toEnvelope,
		lastingEnvelope: (message) => new Uint8Array(toEnvelope(message)),
	};
}

/** Messages that the compiled encoder can't encode, and those that are too large, are left to `serialize`. */
function compiledEncoding(
	schema: DescMessage,
	serialize: (message: Message) => Uint8Array,
	writeMaxBytes: number,
): Encoding {
	const compiled = compileEncoder(schema);
	const toEnvelope = (message: Message) => {
		const bytes = compiled(message, envelopeHeadBytes);
		if (bytes === undefined || bytes.byteLength - envelopeHeadBytes > writeMaxBytes) {
			return new Uint8Array(envelope(0, serialize(message)));
		}
		fillHead(bytes, 0);
		return bytes;
	};
	return {
		encode: (message) => {
			const bytes = compiled(message);
			return bytes === undefined || bytes.byteLength > writeMaxBytes ? serialize(message) : bytes;
		},
		envelope: toEnvelope,
		lastingEnvelope: toEnvelope,
	};
}
