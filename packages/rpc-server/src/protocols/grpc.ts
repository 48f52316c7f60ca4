import type { ConnectError } from "@connectrpc/connect";
import {
	contentTypeJson,
	contentTypeProto,
	grpcStatusOk,
	headerGrpcStatus,
	setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import type { HeaderFields } from "../carrier.ts";
import { fieldsOf, type Protocol, type Response } from "./protocol.ts";

/** The trailers of a successful call. */
export const statusOk: HeaderFields = { [headerGrpcStatus.toLowerCase()]: grpcStatusOk };

/** gRPC over HTTP/2 and, where trailers are supported, over HTTP/1.1. */
export function grpcProtocol(isBinary: boolean): Protocol {
	const responseHeader = { "content-type": isBinary ? contentTypeProto : contentTypeJson };
	const sendHead = ({ carrier, context }: Response) =>
		carrier.respond(200, fieldsOf(context.touchedHeader, responseHeader));
	return {
		name: "grpc",
		isBinary,
		isEnveloped: true,
		endFlag: undefined,
		responseHeader,
		responseTrailer: statusOk,
		sendHead,
		sendMessage(response, message) {
			sendHead(response);
			response.carrier.end(message, fieldsOf(response.context.touchedTrailer, statusOk));
		},
		sendEnd(response, pending, error) {
			sendHead(response);
			response.carrier.end(pending, trailersOf(response.context.touchedTrailer, error));
		},
	};
}

/** The trailers with the status of a call. */
export function trailersOf(
	touched: Headers | undefined,
	error: ConnectError | undefined,
): HeaderFields {
	return error === undefined
		? fieldsOf(touched, statusOk)
		: Object.fromEntries(setTrailerStatus(touched ?? new Headers(statusOk), error));
}
