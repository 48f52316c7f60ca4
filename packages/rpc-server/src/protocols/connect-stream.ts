import type { ConnectRouterOptions } from "@connectrpc/connect";
import {
	contentTypeStreamJson,
	contentTypeStreamProto,
	createEndStreamSerialization,
	endStreamFlag,
} from "@connectrpc/connect/protocol-connect";
import { envelope } from "../messages/envelope.ts";
import { fieldsOf, joined, type Protocol, type Response } from "./protocol.ts";

/** Streams of Connect: the last envelope of the body is JSON with the trailers and the error. */
export function connectStreamProtocol(
	isBinary: boolean,
	{ jsonOptions }: Pick<ConnectRouterOptions, "jsonOptions">,
): Protocol {
	const responseHeader = {
		"content-type": isBinary ? contentTypeStreamProto : contentTypeStreamJson,
	};
	const sendHead = ({ carrier, context }: Response) =>
		carrier.respond(200, fieldsOf(context.touchedHeader, responseHeader));
	const { serialize } = createEndStreamSerialization(jsonOptions);
	return {
		name: "connect",
		isBinary,
		isEnveloped: true,
		endFlag: endStreamFlag,
		responseHeader,
		responseTrailer: {},
		sendHead,
		sendMessage(response, message) {
			this.sendEnd(response, message, undefined);
		},
		sendEnd(response, pending, error) {
			const metadata = response.context.touchedTrailer ?? new Headers();
			const end = serialize(error === undefined ? { metadata } : { metadata, error });
			sendHead(response);
			response.carrier.end(joined(pending, envelope(endStreamFlag, end)), undefined);
		},
	};
}
