import {
	type BinaryReadOptions,
	type DescMessage,
	fromBinary,
	type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { compiledCodec } from "./compiled-codecs.ts";

/** @throws ConnectError Internal if the bytes are not a message of this type. */
export function decodeMessage<Desc extends DescMessage>(
	desc: Desc,
	bytes: Uint8Array,
	options: Partial<BinaryReadOptions> | undefined,
): MessageShape<Desc> {
	try {
		const compiled = options === undefined ? compiledCodec(desc)?.decode(bytes) : undefined;
		return compiled ?? fromBinary(desc, bytes, options);
	} catch (thrown) {
		const what = thrown instanceof Error ? thrown.message : String(thrown);
		throw new ConnectError(`parse binary: ${what}`, Code.Internal);
	}
}

/** The error of a response that ends in the middle of a message. */
export function incompleteMessage(): ConnectError {
	return new ConnectError("protocol error: incomplete message", Code.Internal);
}
