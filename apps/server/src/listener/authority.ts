import type { HttpRequest } from "./request-handler.ts";

/** How many authorities are known to be valid: a server has few names. */
const knownAuthorities = 1_000;

const validAuthorities = new Set<string>();

/** Whether a request has an authority that is a host name or an address, with an optional port. */
export function hasAuthority({ authority }: Pick<HttpRequest, "authority">): boolean {
	if (authority === undefined || validAuthorities.has(authority)) {
		return authority !== undefined;
	}
	const isValid = URL.canParse("/", `http://${authority}`);
	if (isValid && validAuthorities.size < knownAuthorities) {
		validAuthorities.add(authority);
	}
	return isValid;
}

/** The URL of a request; empty if its authority is missing or malformed. */
export function urlOf({
	authority,
	target,
	connection,
}: Pick<HttpRequest, "authority" | "target" | "connection">): string {
	const scheme = connection.isEncrypted ? "https" : "http";
	return authority === undefined
		? ""
		: (URL.parse(target, `${scheme}://${authority}`)?.toString() ?? "");
}
