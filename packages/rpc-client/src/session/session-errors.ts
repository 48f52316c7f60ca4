import { Code, ConnectError } from "@connectrpc/connect";

/** OpenSSL's codes for what is no TLS at all. */
const notTls: readonly unknown[] = [
	"ERR_SSL_WRONG_VERSION_NUMBER",
	"ERR_SSL_PACKET_LENGTH_TOO_LONG",
];

/** The error of calls on a connection that could not be opened. Always Unavailable. */
export function connectError(authority: string, error: Error): ConnectError {
	return "code" in error && notTls.includes(error.code)
		? wrongScheme(authority, "does not speak TLS", error)
		: connectionError(authority, error);
}

/** The error of calls to a server that expects TLS, and was called without. */
export function tlsExpected(authority: string): ConnectError {
	const cause = Object.assign(new Error("speaks TLS"), { code: "ERR_HTTP2_ERROR" });
	return wrongScheme(authority, cause.message, cause);
}

/** The error of calls whose connection the server has closed instead of speaking HTTP/2. */
export function closedSilently(authority: string): ConnectError {
	// Servers that expect TLS may say nothing.
	if (authority.startsWith("http:")) {
		const what = "closed the connection without a response";
		return wrongScheme(authority, what, Object.assign(new Error(what), { code: "ECONNRESET" }));
	}
	return lostConnection(authority, "closed the connection: does it speak HTTP/2?", "ECONNRESET");
}

/** @param what - the server does. */
function wrongScheme(authority: string, what: string, cause: Error): ConnectError {
	const other = authority.startsWith("https:")
		? authority.replace("https:", "http:")
		: authority.replace("http:", "https:");
	const message = `${authority} ${what}: is it ${other}?`;
	return new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
}

/** The error of calls on a connection that has failed. Always Unavailable. */
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

/**
 * The error of a host with several addresses has no message of its own, but one error for each address. The messages of
 * OpenSSL have places in its source.
 */
function textOf(error: Error): string {
	if ("library" in error && "reason" in error && typeof error.reason === "string") {
		return `TLS failed: ${error.reason}`;
	}
	return error instanceof AggregateError && error.message === ""
		? error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join("; ")
		: error.message;
}
