import { Buffer } from "node:buffer";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { compileCompleteDecoder, compileEncoder } from "@plinth/wire-format";

/** A generated encoder and decoder of a message type. Both return `undefined` for what they do not cover. */
export interface CompiledCodec<Desc extends DescMessage = DescMessage> {
	/** @param zeros - how many zero bytes to put before the message. */
	encode(message: MessageShape<Desc>, zeros: number): Buffer | undefined;
	/** `bytes` fields of the message are views of the bytes. */
	decode(bytes: Uint8Array): MessageShape<Desc> | undefined;
}

/** Messages of a type before its codec is generated: a command that makes one call does not wait for that. */
const plainMessages = 4;

const codecs = new WeakMap<DescMessage, CompiledCodec>();
const counts = new WeakMap<DescMessage, number>();

/** The codec of a message type; `undefined` for its first messages. */
export function compiledCodec<Desc extends DescMessage>(
	desc: Desc,
): CompiledCodec<Desc> | undefined {
	const known = codecs.get(desc);
	if (known !== undefined) {
		return known as CompiledCodec<Desc>;
	}
	const count = (counts.get(desc) ?? 0) + 1;
	counts.set(desc, count);
	if (count <= plainMessages) {
		return undefined;
	}
	const codec = compile(desc);
	codecs.set(desc, codec);
	return codec as CompiledCodec<Desc>;
}

function compile(desc: DescMessage): CompiledCodec {
	const encode = compileEncoder(desc);
	return {
		encode: (message, zeros) => {
			const bytes = encode(message, { zeros });
			return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		},
		decode: compileCompleteDecoder(desc, { copiesBytes: false }) ?? (() => undefined),
	};
}
