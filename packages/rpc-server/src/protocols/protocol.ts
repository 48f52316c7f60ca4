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
	/** The flag of envelopes that end a stream, if the protocol has such. */
	readonly endFlag: number | undefined;
	/** The headers and trailers of each response. */
	readonly responseHeader: HeaderFields;
	readonly responseTrailer: HeaderFields;
	/** Sends the head of the response, if it was not sent. */
	sendHead(response: Response): void;
	/** Sends the response of a unary call: its message, in an envelope if the protocol has them. */
	sendMessage(response: Response, message: Uint8Array): void;
	/**
	 * Ends a response.
	 *
	 * @param pending - the envelopes that were not written yet.
	 * @param error - why the call failed; `undefined` if a stream has ended well.
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

/** The fields of headers that were accessed, or those of the protocol. */
export function fieldsOf(touched: Headers | undefined, untouched: HeaderFields): HeaderFields {
	return touched === undefined ? untouched : Object.fromEntries(touched);
}

/** Two parts as one. */
export function joined(first: Uint8Array | undefined, second: Uint8Array): Uint8Array {
	return first === undefined ? second : Buffer.concat([first, second]);
}
