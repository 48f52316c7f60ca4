import type { ConnectRouterOptions } from "@connectrpc/connect";
import { mergeNonProtocolHeaders } from "@connectrpc/connect/protocol";
import {
	codeToHttpStatus,
	contentTypeUnaryJson,
	contentTypeUnaryProto,
	errorToJsonBytes,
	trailerMux,
} from "@connectrpc/connect/protocol-connect";
import type { HeaderFields } from "../carrier.ts";
import type { Protocol, Response } from "./protocol.ts";

/** Unary calls of Connect: the message, or the error as JSON, is the body. Trailers are headers with a prefix. */
export function connectUnaryProtocol(
	isBinary: boolean,
	{ jsonOptions }: Pick<ConnectRouterOptions, "jsonOptions">,
): Protocol {
	const contentType = isBinary ? contentTypeUnaryProto : contentTypeUnaryJson;
	const responseHeader = { "content-type": contentType };
	return {
		name: "connect",
		isBinary,
		isEnveloped: false,
		endFlag: undefined,
		responseHeader,
		responseTrailer: {},
		sendHead() {
			throw new Error("the head of a unary response depends on its body");
		},
		sendMessage({ carrier, context }, message) {
			const { touchedHeader, touchedTrailer } = context;
			carrier.respond(
				200,
				touchedHeader === undefined && touchedTrailer === undefined
					? { "content-type": contentType, "content-length": String(message.byteLength) }
					: fields(context, message),
			);
			carrier.end(message, undefined);
		},
		sendEnd({ carrier, context }, _pending, error) {
			if (error === undefined) {
				throw new Error("a unary call ends with its message or with an error");
			}
			context.responseHeader.set("content-type", contentTypeUnaryJson);
			if (!error.isWireError) {
				mergeNonProtocolHeaders(context.responseHeader, error.metadata);
			}
			const body = errorToJsonBytes(error, jsonOptions);
			carrier.respond(codeToHttpStatus(error.code), fields(context, body));
			carrier.end(body, undefined);
		},
	};
}

function fields(
	{ responseHeader, touchedTrailer }: Response["context"],
	body: Uint8Array,
): HeaderFields {
	const headers = trailerMux(responseHeader, touchedTrailer ?? new Headers());
	headers.set("content-length", String(body.byteLength));
	return Object.fromEntries(headers);
}
