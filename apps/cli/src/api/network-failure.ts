import type { ConnectError } from "@connectrpc/connect";

/** Whether a call failed in the network, without a response of the server. */
export function isNetworkFailure(error: ConnectError): boolean {
	return codeOf(error) !== undefined;
}

/** Explains a network failure, and what to do about it. */
export function networkAdvice(error: ConnectError, server: string): string {
	const code = codeOf(error) ?? "";
	const { protocol } = new URL(server);
	if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
		return `the certificate of ${server} is not trusted: ${causeOf(error)}. Set the trusted certificates with --ca-file`;
	}
	if (/^ERR_SSL|EPROTO/.test(code)) {
		const hint = code.includes("WRONG_VERSION") ? ` Is it ${otherScheme(server)}?` : "";
		return `TLS with ${server} failed: ${code}.${hint}`;
	}
	if (code === "ERR_HTTP2_ERROR") {
		return `${server} does not speak HTTP/2, which gRPC needs. Is there a proxy that speaks HTTP/1.1 only?`;
	}
	if (isClosedSilently(error) && protocol === "http:") {
		return `${server} closed the connection without a response. Is it ${otherScheme(server)}?`;
	}
	return `can't reach ${server}: ${causeOf(error)}. Is the server running at this address? Change the address with --server, PLINTH_SERVER or a context`;
}

function codeOf({ cause }: ConnectError): string | undefined {
	return cause instanceof Error && "code" in cause && typeof cause.code === "string"
		? cause.code
		: undefined;
}

/** Whether the server closed the connection before it said anything. */
function isClosedSilently({ rawMessage }: ConnectError): boolean {
	return rawMessage.endsWith("does it speak HTTP/2?");
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
