import { Code, ConnectError } from "@connectrpc/connect";
import type { CallContext } from "./call-context.ts";

/** Names that carry the protocol on a wire; errors must not set them. */
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
 * What the caller gets of an error that a handler threw: a new error with the code, the message and
 * the details, and in its metadata the headers and trailers of the response besides the error's
 * own. What is not a `ConnectError` may say things that are not the caller's business.
 */
export function asWireError(thrown: unknown, context: CallContext): ConnectError {
	const isConnectError = thrown instanceof ConnectError;
	const error = isConnectError
		? new ConnectError(thrown.rawMessage, thrown.code, context.touchedTrailer, [])
		: new ConnectError("internal error", Code.Internal, context.touchedTrailer);
	if (isConnectError) {
		error.details = [...thrown.details];
		// An error that came over another call carries that call's headers: they stay there.
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

/** The error of a call whose signal aborted with the given reason. */
export function canceledBy(reason: unknown): ConnectError {
	return ConnectError.from(reason, Code.Canceled);
}

/** What a handler's signal says when its caller has gone. */
export function callerGone(): ConnectError {
	return new ConnectError("the caller canceled the call", Code.Canceled);
}

/** The error of a call that reached its deadline. */
export function deadlineExceeded(): ConnectError {
	return new ConnectError("the operation timed out", Code.DeadlineExceeded);
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
