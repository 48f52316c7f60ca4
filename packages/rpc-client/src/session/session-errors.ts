import { Code, ConnectError } from "@connectrpc/connect";

/** The error of calls on a connection that could not be opened or has failed. Always Unavailable. */
export function connectionError(authority: string, error: Error): ConnectError {
	return new ConnectError(
		`${authority}: ${error.message}`,
		Code.Unavailable,
		undefined,
		undefined,
		error,
	);
}

/**
 * The error of calls on a connection whose server breaks the rules of HTTP/2.
 *
 * @param speaksHttp2 - whether it has sent its settings before.
 */
export function protocolError(
	authority: string,
	message: string,
	speaksHttp2: boolean,
): ConnectError {
	const what = speaksHttp2
		? message
		: `the server does not speak HTTP/2, which gRPC needs: ${message}`;
	return new ConnectError(`${authority}: ${what}`, Code.Unavailable);
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
