import { Code, ConnectError } from "@connectrpc/connect";

/**
 * The error of calls on a connection that could not be opened or has failed. Always Unavailable.
 *
 * @param speaksHttp2 - whether the server has sent its HTTP/2 settings on it.
 */
export function connectionError(
	authority: string,
	error: Error & { readonly code?: unknown },
	speaksHttp2: boolean,
): ConnectError {
	const isProtocolError = error.code === "ERR_HTTP2_ERROR";
	const what =
		isProtocolError && !speaksHttp2
			? `the server does not speak HTTP/2, which gRPC needs: ${error.message}`
			: error.message;
	return new ConnectError(`${authority}: ${what}`, Code.Unavailable, undefined, undefined, error);
}

/** Whether this is the error of a stream that the server has reset. */
export function isReset(error: Error & { readonly code?: unknown }): boolean {
	return error.code === "ERR_HTTP2_STREAM_ERROR";
}

/** The error of calls whose connection ended without an error. `code` becomes the code of its cause. */
export function lostConnection(
	authority: string,
	what: string,
	code: "ECONNRESET" | "ETIMEDOUT",
): ConnectError {
	const cause = Object.assign(new Error(what), { code });
	return new ConnectError(`${authority} ${what}`, Code.Unavailable, undefined, undefined, cause);
}
