import type { ConnectError } from "@connectrpc/connect";

/** Whether a call failed in the network, without a response of the server. */
export function isNetworkFailure(error: ConnectError): boolean {
	return codeOf(error) !== undefined;
}

/** Explains a network failure, and what to do about it. */
export function networkAdvice(error: ConnectError, server: string): string {
	const code = codeOf(error) ?? "";
	const { rawMessage } = error;
	if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
		return `the certificate of ${server} is not trusted: ${causeOf(error)}. Set the trusted certificates with --ca-file`;
	}
	// What is wrong with TLS, or with the scheme, is said already.
	if (/^ERR_SSL|EPROTO/.test(code) || /: is it https?:\S+\?$/.test(rawMessage)) {
		return rawMessage;
	}
	if (code === "ERR_HTTP2_ERROR") {
		return `${server} does not speak HTTP/2, which gRPC needs. Is there a proxy that speaks HTTP/1.1 only?`;
	}
	return `can't reach ${server}: ${causeOf(error)}. Is the server running at this address? Change the address with --server, PLINTH_SERVER or a context`;
}

function codeOf({ cause }: ConnectError): string | undefined {
	return cause instanceof Error && "code" in cause && typeof cause.code === "string"
		? cause.code
		: undefined;
}

function causeOf({ cause, rawMessage }: ConnectError): string {
	const inner = cause instanceof AggregateError ? cause.errors[0] : cause;
	return inner instanceof Error && inner.message !== ""
		? inner.message.replace(/; if the root CA.*/s, "")
		: rawMessage;
}
