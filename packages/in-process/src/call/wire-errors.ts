import { Code, ConnectError } from "@connectrpc/connect";
import type { CallContext } from "./call-context.ts";

/** Headers of the protocol, which errors must not set. */
const protocolHeaders = new Set([
	"content-type",
	"content-length",
	"content-encoding",
	"host",
	"user-agent",
	"trailer",
	"date",
]);

/**
 * The error that the caller receives for an error that a handler threw: a new error with the code, the
 * message and the details, whose metadata also contains the headers and trailers of the response. An
 * error that is not a `ConnectError` becomes `Internal` without its message, which may be confidential.
 */
export function asWireError(thrown: unknown, context: CallContext): ConnectError {
	const isConnectError = thrown instanceof ConnectError;
	const error = isConnectError
		? new ConnectError(thrown.rawMessage, thrown.code, context.touchedTrailer, [])
		: new ConnectError("internal error", Code.Internal, context.touchedTrailer);
	if (isConnectError) {
		error.details = [...thrown.details];
		// The metadata of an error from another call are that call's headers: they are not forwarded.
		if (!thrown.isWireError) {
			append(error.metadata, thrown.metadata);
		}
	}
	if (context.touchedHeader !== undefined) {
		append(error.metadata, context.touchedHeader);
	}
	error.isWireError = true;
	return error;
}

/** The reason of a handler's signal after its caller canceled the call. */
export function callerGone(): ConnectError {
	return new ConnectError("the caller canceled the call", Code.Canceled);
}

/** The error of a call that a shutdown ended. */
export function shutDownBy(reason: unknown): ConnectError {
	return reason instanceof ConnectError
		? reason
		: new ConnectError("the server is shutting down", Code.Unavailable);
}

function append(into: Headers, from: Headers): void {
	for (const [name, value] of from) {
		if (!protocolHeaders.has(name)) {
			into.append(name, value);
		}
	}
}
