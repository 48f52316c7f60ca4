import { Code, ConnectError } from "@connectrpc/connect";

/** The error of calls on a connection that could not be opened or has failed. Always Unavailable. */
export function connectionError(authority: string, error: Error): ConnectError {
	return new ConnectError(
		`${authority}: ${textOf(error)}`,
		Code.Unavailable,
		undefined,
		undefined,
		error,
	);
}

/**
 * The error of calls on a connection whose server breaks the rules of HTTP/2.
 *
 * @param message - what it has done; empty if that says nothing.
 * @param speaksHttp2 - whether it has sent its settings before.
 */
export function protocolError(
	authority: string,
	message: string,
	speaksHttp2: boolean,
): ConnectError {
	const unable = "the server does not speak HTTP/2, which gRPC needs";
	const what = speaksHttp2 ? message : [unable, message].filter((each) => each !== "").join(": ");
	const cause = Object.assign(new Error(what), { code: "ERR_HTTP2_ERROR" });
	return new ConnectError(`${authority}: ${what}`, Code.Unavailable, undefined, undefined, cause);
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

/** The error of a host with several addresses has no message of its own, but one error for each address. */
function textOf(error: Error): string {
	return error instanceof AggregateError && error.message === ""
		? error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join("; ")
		: error.message;
}
