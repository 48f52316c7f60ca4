import {
	create,
	type DescMessage,
	type DescMethod,
	type Message,
	type MessageInitShape,
	toBinary,
	toJsonString,
} from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { compileDecoder, compileEncoder } from "@plinth/wire-format";
import { embeddedMessages, joinBinary, joinJson, type MessageField } from "./embedded-messages.ts";
import { envelope, envelopeHeadBytes, fillHead } from "./envelope.ts";
import { type EncodingKey, sharedEnvelope } from "./shared-encodings.ts";

/** Encodes and decodes the messages of one method in one format, within its limits. */
export interface Codec {
	/**
	 * The message shares no memory with the bytes, which others may use, while fields of the message may be kept for long.
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
	const { binaryOptions, jsonOptions, writeMaxBytes } = options;
	const lookup = createMethodSerializationLookup(method, binaryOptions, jsonOptions, options);
	const codec = (
		decode: Codec["decode"],
		key: EncodingKey,
		encoding: Encoding,
		embedding: Embedding,
	): Codec => {
		const joined =
			method.methodKind === "unary"
				? undefined
				: joinedEnvelope(method.output, key, encoding, embedding);
		return {
			decode,
			complete: (output) => create(method.output, output),
			encode: encoding.encode,
			envelope: (message) =>
				sharedEnvelope(message, key, encoding.lastingEnvelope) ??
				joined?.(message, writeMaxBytes) ??
				encoding.envelope(message),
		};
	};
	const parse = lookup.getI(true).parse;
	const binary = lookup.getO(true).serialize;
	return {
		binary: codec(
			binaryOptions === undefined
				? compiledDecode(method.input, parse, options.readMaxBytes)
				: copying(parse),
			binaryOptions ?? defaultBinary,
			binaryOptions === undefined
				? compiledEncoding(method.output, binary, options.writeMaxBytes)
				: encodingOf(binary),
			{
				encodingOf: (schema) => {
					const serialize = (message: Message) => toBinary(schema, message, binaryOptions);
					return binaryOptions === undefined
						? compiledEncoding(schema, serialize, writeMaxBytes)
						: encodingOf(serialize);
				},
				join: joinBinary,
			},
		),
		json: codec(
			lookup.getI(false).parse,
			jsonOptions ?? defaultJson,
			encodingOf(lookup.getO(false).serialize),
			{
				encodingOf: (schema) =>
					encodingOf((message) => Buffer.from(toJsonString(schema, message, jsonOptions))),
				join: (outer, field, inner) =>
					joinJson(outer, jsonOptions?.useProtoFieldName ? field.name : field.jsonName, inner),
			},
		),
	};
}

/** How the messages of a codec are encoded. */
interface Encoding {
	encode(message: Message): Uint8Array;
	envelope(message: Message): Uint8Array;
	/** An envelope in memory of its own, which may be kept. */
	lastingEnvelope(message: Message): Uint8Array;
}

/** How messages of a format are embedded in others. */
interface Embedding {
	encodingOf(schema: DescMessage): Pick<Encoding, "lastingEnvelope">;
	/** The envelope of a message, from the bytes of its other fields, and those of the message in that field. */
	join(outer: Uint8Array, field: MessageField, inner: Uint8Array): Uint8Array;
}

/**
 * Encodes messages that embed a shared one, which is encoded once for all messages that embed it, and for all calls that
 * send it as it is.
 *
 * @returns a function that returns `undefined` for all other messages, and for those that can't be encoded or are too
 * large; `undefined` if no message of the type embeds another one in its last field.
 */
function joinedEnvelope(
	schema: DescMessage,
	key: EncodingKey,
	outer: Pick<Encoding, "encode">,
	{ encodingOf, join }: Embedding,
): ((message: Message, writeMaxBytes: number) => Uint8Array | undefined) | undefined {
	const embedded = embeddedMessages(schema);
	const encodings = new Map<MessageField, Pick<Encoding, "lastingEnvelope">>();
	const encodingFor = (field: MessageField) => {
		let encoding = encodings.get(field);
		if (encoding === undefined) {
			encoding = encodingOf(field.message);
			encodings.set(field, encoding);
		}
		return encoding;
	};
	return (
		embedded &&
		((message, writeMaxBytes) => {
			const found = embedded(message);
			if (found === undefined) {
				return undefined;
			}
			const { field } = found;
			let inner: Uint8Array | undefined;
			try {
				inner = sharedEnvelope(found.message, key, encodingFor(field).lastingEnvelope);
			} catch {
				// The caller encodes the whole message, which throws a precise error.
			}
			if (inner === undefined) {
				return undefined;
			}
			const bytes = join(
				outer.encode(found.withoutField()),
				field,
				inner.subarray(envelopeHeadBytes),
			);
			return bytes.byteLength - envelopeHeadBytes > writeMaxBytes ? undefined : bytes;
		})
	);
}

function encodingOf(serialize: (message: Message) => Uint8Array): Encoding {
	const toEnvelope = (message: Message) => envelope(0, serialize(message));
	return {
		encode: serialize,
		envelope: toEnvelope,
		lastingEnvelope: (message) => new Uint8Array(toEnvelope(message)),
	};
}

/** A parser of bytes in their own memory, for any bytes: its messages have fields that are views of them. */
function copying(parse: (bytes: Uint8Array) => Message): (bytes: Uint8Array) => Message {
	return (bytes) => parse(new Uint8Array(bytes));
}

/** Messages that the compiled decoder does not cover, and those that are too large, are left to `parse`. */
function compiledDecode(
	schema: DescMessage,
	parse: (bytes: Uint8Array) => Message,
	readMaxBytes: number,
): (bytes: Uint8Array) => Message {
	const compiled = compileDecoder(schema, { copiesBytes: true });
	const copyAndParse = copying(parse);
	return (bytes) =>
		(bytes.byteLength <= readMaxBytes ? compiled(bytes) : undefined) ?? copyAndParse(bytes);
}

/** Messages that the compiled encoder can't encode, and those that are too large, are left to `serialize`. */
function compiledEncoding(
	schema: DescMessage,
	serialize: (message: Message) => Uint8Array,
	writeMaxBytes: number,
): Encoding {
	const compiled = compileEncoder(schema);
	const toEnvelope = (message: Message, isLasting: boolean) => {
		const bytes = compiled(message, { zeros: envelopeHeadBytes, isLasting });
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
		envelope: (message) => toEnvelope(message, false),
		lastingEnvelope: (message) => toEnvelope(message, true),
	};
}
