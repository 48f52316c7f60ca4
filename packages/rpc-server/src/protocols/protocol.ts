import type { ConnectError } from "@connectrpc/connect";
import type { Carrier, HeaderFields } from "../carrier.ts";
import type { CallContext } from "../context/call-context.ts";
import type { Codec, Codecs } from "../messages/codec.ts";

/** How one protocol, with one format of messages, maps calls to HTTP. */
export interface Protocol {
	readonly name: "grpc" | "grpc-web" | "connect";
	readonly isBinary: boolean;
	/** Whether messages are in envelopes; if not, the message is the whole body. */
	readonly isEnveloped: boolean;
	/** The flag of envelopes that end a stream, if the protocol has one. */
	readonly endFlag: number | undefined;
	/** The headers and trailers of each response. */
	readonly responseHeader: HeaderFields;
	readonly responseTrailer: HeaderFields;
	/** Sends the head of the response, unless it was sent already. */
	sendHead(response: Response): void;
	/** Sends the response of a unary call: its message, in an envelope if the protocol has them. */
	sendMessage(response: Response, message: Uint8Array): void;
	/**
	 * Ends a response.
	 *
	 * @param pending - envelopes that were not written yet.
	 * @param error - the error of the call; `undefined` if a stream has ended without one.
	 */
	sendEnd(
		response: Response,
		pending: Uint8Array | undefined,
		error: ConnectError | undefined,
	): void;
}

/** The response of a call, as protocols see it. */
export interface Response {
	readonly carrier: Carrier;
	readonly context: CallContext;
}

/** The codec for the messages of a protocol. */
export function codecOf({ isBinary }: Pick<Protocol, "isBinary">, codecs: Codecs): Codec {
	return isBinary ? codecs.binary : codecs.json;
}

/** The fields of `touched`, the headers that an implementation accessed; without them, those of the protocol. */
export function fieldsOf(touched: Headers | undefined, untouched: HeaderFields): HeaderFields {
	return touched === undefined ? untouched : Object.fromEntries(touched);
}

/** Two parts, concatenated. */
export function joined(first: Uint8Array | undefined, second: Uint8Array): Uint8Array {
	return first === undefined ? second : Buffer.concat([first, second]);
}
