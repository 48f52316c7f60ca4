import {
	create,
	type DescMessage,
	type DescMethod,
	type Message,
	type MessageInitShape,
} from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import { envelope } from "./envelope.ts";
import { type EncodingKey, sharedEnvelope } from "./shared-encodings.ts";

/** Encodes and decodes the messages of one method in one format, within its limits. */
export interface Codec {
	/** @throws ConnectError if the bytes are no message, or too many. */
	decode(bytes: Uint8Array): Message;
	/** The message for what an implementation has returned. */
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
	const codec = (isBinary: boolean, key: EncodingKey): Codec => {
		const { parse } = lookup.getI(isBinary);
		const { serialize } = lookup.getO(isBinary);
		const toEnvelope = (message: Message) => envelope(0, serialize(message));
		// In memory of its own, because it is kept.
		const toLasting = (message: Message) => new Uint8Array(toEnvelope(message));
		return {
			decode: parse,
			complete: (output) => create(method.output, output),
			encode: serialize,
			envelope: (message) => sharedEnvelope(message, key, toLasting) ?? toEnvelope(message),
		};
	};
	return {
		binary: codec(true, binaryOptions ?? defaultBinary),
		json: codec(false, jsonOptions ?? defaultJson),
	};
}
