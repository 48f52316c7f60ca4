import type { ConnectError } from "@connectrpc/connect";

/** Whether a call failed on its way, and the server itself said nothing: Node says what happened. */
export function isNetworkFailure(error: ConnectError): boolean {
	return codeOf(error) !== undefined || isClosedStream(error);
}

/** What happened on the way, and what to do about it. */
export function networkAdvice(error: ConnectError, server: string): string {
	const code = codeOf(error) ?? "";
	const { protocol } = new URL(server);
	if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
		return `the certificate of ${server} is not trusted: ${causeOf(error)}. Say whom to trust with --ca-file`;
	}
	if (/^ERR_SSL|EPROTO/.test(code)) {
		const hint = code.includes("WRONG_VERSION") ? ` Is it ${otherScheme(server)}?` : "";
		return `no TLS with ${server}: ${code}.${hint}`;
	}
	if (isClosedStream(error) && protocol === "http:") {
		return `${server} closed the connection without an answer. Is it ${otherScheme(server)}?`;
	}
	return `can't reach ${server}: ${causeOf(error)}. Is the server running, and is this its address? Another one is given with --server, PLINTH_SERVER or a context`;
}

function codeOf({ cause }: ConnectError): string | undefined {
	return cause instanceof Error && "code" in cause && typeof cause.code === "string"
		? cause.code
		: undefined;
}

/** Connect makes this error itself, from a reset of the stream that came with no answer. */
function isClosedStream({ rawMessage }: ConnectError): boolean {
	return rawMessage.startsWith("http/2 stream closed");
}

function causeOf({ cause, rawMessage }: ConnectError): string {
	const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
	return inner instanceof Error && inner.message !== ""
		? inner.message.replace(/; if the root CA.*/s, "")
		: rawMessage;
}

function otherScheme(server: string): string {
	return server.startsWith("https:")
		? server.replace("https:", "http:")
		: server.replace("http:", "https:");
}
