import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
	codeToHttpStatus,
	endStreamFlag,
	endStreamToJson,
	errorToJson,
	parseContentType,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Fields, InboundCall } from "../inbound-call.ts";

/** The flag of the message of gRPC-Web that has the trailers. */
const webTrailersFlag = 0x80;

const grpc = /^application\/grpc(?!-web)/;
const grpcWeb = /^application\/grpc-web(?!-text)/;

/** A Connect call by GET, whose request is in the query. */
const connectGet = /[?&]encoding=(?:json|proto)(?:&|$)/;

/**
 * Responds to a call with an error, in the form in which its client expects errors. Nothing of a response may have been
 * sent.
 *
 * | client | status | location of the error |
 * | --- | --- | --- |
 * | Connect, unary | that of the code | a JSON body |
 * | Connect, streaming | 200 | the message that ends the stream |
 * | gRPC, gRPC-Web | 200 | `grpc-status`, among the headers |
 * | anything else | that of the code | plain text |
 */
export function respondWithError(call: InboundCall, error: ConnectError): void {
	const contentType = call.header("content-type") ?? "";
	if (grpc.test(contentType) || contentType.startsWith("application/grpc-web")) {
		call.respond(200, { "content-type": contentType, ...statusFields(error) }, false);
		call.end();
		return;
	}
	const isGet = call.method === "GET" && connectGet.test(call.target);
	const connect = isGet ? { stream: false } : parseContentType(contentType);
	if (connect?.stream === true) {
		call.respond(200, { "content-type": contentType }, false);
		send(call, connectEnd(error));
		return;
	}
	const body =
		connect === undefined ? `${error.rawMessage}\n` : JSON.stringify(errorToJson(error, undefined));
	const bytes = new TextEncoder().encode(body);
	call.respond(
		codeToHttpStatus(error.code),
		{
			"content-type": connect === undefined ? "text/plain; charset=utf-8" : "application/json",
			"content-length": String(bytes.length),
			"cache-control": "no-store",
			"x-content-type-options": "nosniff",
		},
		false,
	);
	send(call, call.method === "HEAD" ? new Uint8Array() : bytes);
}

/**
 * Ends a response that has begun with an error, if its protocol has a place for one. Returns false if it has none: only a
 * reset tells the client then.
 *
 * @param contentType - of the response.
 * @param isAtBoundary - whether the messages that were sent are complete.
 */
export function endWithError(
	call: InboundCall,
	error: ConnectError,
	contentType: string,
	isAtBoundary: boolean,
): boolean {
	// Clients of gRPC report trailers in the middle of a message as they like, some as an invalid argument.
	if (!isAtBoundary) {
		return false;
	}
	if (grpc.test(contentType)) {
		call.end(statusFields(error));
		return true;
	}
	if (grpcWeb.test(contentType)) {
		const lines = Object.entries(statusFields(error)).map(
			([name, value]) => `${name}: ${value}\r\n`,
		);
		send(call, encodeEnvelope(webTrailersFlag, new TextEncoder().encode(lines.join(""))));
		return true;
	}
	if (parseContentType(contentType)?.stream === true) {
		send(call, connectEnd(error));
		return true;
	}
	return false;
}

function statusFields(error: ConnectError): Fields {
	return Object.fromEntries(setTrailerStatus(new Headers(), error));
}

function connectEnd(error: ConnectError): Uint8Array {
	const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
	return encodeEnvelope(endStreamFlag, new TextEncoder().encode(end));
}

/** Sends the last bytes of a response. They are few: the client need not read before the end is sent. */
function send(call: InboundCall, bytes: Uint8Array): void {
	if (bytes.length > 0) {
		// The call has ended if it rejects.
		call.write(bytes)?.catch(() => {});
	}
	call.end();
}
