import { Code, ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
	parseContentType as connectType,
	endStreamFlag,
	endStreamToJson,
	errorToJson,
} from "@connectrpc/connect/protocol-connect";
import { contentTypeRegExp as grpcType, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { contentTypeRegExp as grpcWebType } from "@connectrpc/connect/protocol-grpc-web";
import { type HttpRequest, type HttpResponse, sendText } from "./request-handler.ts";

/** A Connect call by GET, whose request is in the query. */
const connectGet = /[?&]encoding=(?:json|proto)(?:&|$)/;

/** Why a request is refused. */
export interface RequestRefusal {
	readonly code:
		| Code.PermissionDenied
		| Code.InvalidArgument
		| Code.ResourceExhausted
		| Code.Unauthenticated;
	readonly message: string;
}

const statuses: Readonly<Record<RequestRefusal["code"], number>> = {
	[Code.PermissionDenied]: 403,
	[Code.InvalidArgument]: 400,
	[Code.ResourceExhausted]: 429,
	[Code.Unauthenticated]: 401,
};

/**
 * Refuses a request before it is read, in the form in which its client expects errors:
 *
 * | client | status | location of the message |
 * | --- | --- | --- |
 * | Connect, unary | 400, 401, 403 or 429 | a JSON body |
 * | Connect, streaming | 200 | the message that ends the stream |
 * | gRPC, gRPC-Web | 200 | `grpc-message`, among the headers |
 * | anything else | 400, 401, 403 or 429 | plain text |
 *
 * Clients of streaming Connect, gRPC and gRPC-Web read errors from nowhere else.
 */
export function refuseRequest(
	request: HttpRequest,
	response: HttpResponse,
	{ code, message }: RequestRefusal,
): void {
	const error = new ConnectError(message, code);
	const status = statuses[code];
	const contentType = request.header("content-type") ?? "";
	// Drops the rest of the request.
	request.discard();
	response.setHeader("x-content-type-options", "nosniff");
	if (grpcType.test(contentType) || grpcWebType.test(contentType)) {
		response.setHeader("content-type", contentType);
		for (const [name, value] of setTrailerStatus(new Headers(), error)) {
			response.setHeader(name, value);
		}
		response.end();
		return;
	}
	const isGet = request.method === "GET" && connectGet.test(request.target);
	const connect = isGet ? { stream: false } : connectType(contentType);
	if (connect === undefined) {
		sendText(response, status, message);
	} else if (connect.stream) {
		const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
		response.setHeader("content-type", contentType);
		response.end(encodeEnvelope(endStreamFlag, new TextEncoder().encode(end)));
	} else {
		const body = JSON.stringify(errorToJson(error, undefined));
		sendText(response, status, body, "application/json");
	}
}
