import { Buffer } from "node:buffer";
import {
	type BinaryWriteOptions,
	type DescMessage,
	type MessageShape,
	toBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { compiledCodec } from "./compiled-codecs.ts";

/** The prefix of every message: a byte of flags and four bytes of length. */
export const prefixBytes = 5;

/**
 * A message with its prefix, as gRPC sends it.
 *
 * @throws ConnectError ResourceExhausted if the message is larger than `maxBytes`, Internal if a field has a value of
 *   the wrong type.
 */
export function encodeMessage<Desc extends DescMessage>(
	desc: Desc,
	message: MessageShape<Desc>,
	maxBytes: number,
	options: Partial<BinaryWriteOptions> | undefined,
): Buffer {
	const framed =
		(options === undefined ? compiledCodec(desc)?.encode(message, prefixBytes) : undefined) ??
		withRoom(serialize(desc, message, options));
	const length = framed.length - prefixBytes;
	if (length > maxBytes) {
		throw new ConnectError(
			`message size ${length} is larger than configured writeMaxBytes ${maxBytes}`,
			Code.ResourceExhausted,
		);
	}
	framed[0] = 0;
	framed.writeUInt32BE(length, 1);
	return framed;
}

/** The bytes, after room for a prefix. */
function withRoom(bytes: Uint8Array): Buffer {
	const framed = Buffer.allocUnsafe(prefixBytes + bytes.length);
	framed.set(bytes, prefixBytes);
	return framed;
}

function serialize<Desc extends DescMessage>(
	desc: Desc,
	message: MessageShape<Desc>,
	options: Partial<BinaryWriteOptions> | undefined,
): Uint8Array {
	try {
		return toBinary(desc, message, options);
	} catch (thrown) {
		throw ConnectError.from(thrown, Code.Internal);
	}
}
