import type { Fields, RequestHead } from "../http2.ts";
import { contentLengthOf, countOf, fieldValue, problemOfTrailers } from "./fields.ts";
import type { MalformedHead } from "./malformed-head.ts";

/** Builds a request's head from its decoded fields: RFC 9113, sections 8.2, 8.3 and 8.5. */
export function parseRequestHead(decoded: Fields): RequestHead | MalformedHead {
	const pseudo: PseudoFields = {};
	let index = 0;
	for (; (decoded[index] ?? "").startsWith(":"); index += 2) {
		const problem = takePseudoField(pseudo, decoded[index] ?? "", decoded[index + 1] ?? "");
		if (problem !== undefined) {
			return { problem };
		}
	}
	const fields = decoded.slice(index);
	const problem =
		problemOfTrailers(fields) ??
		problemOfPseudoFields(pseudo) ??
		problemOfHost(pseudo.authority, fields);
	if (problem !== undefined) {
		return { problem };
	}
	const contentLength = contentLengthOf(fields);
	if (contentLength === undefined) {
		return { problem: "content-length is not a number, or is repeated" };
	}
	return {
		method: pseudo.method ?? "",
		scheme: pseudo.scheme ?? "",
		authority: pseudo.authority ?? fieldValue(fields, "host") ?? "",
		path: pseudo.path ?? "",
		fields,
		contentLength,
	};
}

interface PseudoFields {
	method?: string;
	scheme?: string;
	authority?: string;
	path?: string;
}

/** The characters of each pseudo-header field. */
const methodSyntax = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const schemeSyntax = /^[A-Za-z][A-Za-z0-9+\-.]*$/;
const authoritySyntax = /^[^\0- @/?#\\\x7f-\xff]*$/;
const pathSyntax = /^[^\0- \x7f#]+$/;

function takePseudoField(pseudo: PseudoFields, name: string, value: string): string | undefined {
	switch (name) {
		case ":method":
			return takeOnce(pseudo, "method", value, methodSyntax);
		case ":scheme":
			return takeOnce(pseudo, "scheme", value, schemeSyntax);
		case ":authority":
			return takeOnce(pseudo, "authority", value, authoritySyntax);
		case ":path":
			return takeOnce(pseudo, "path", value, pathSyntax);
		default:
			return `a request has the unknown pseudo-header field ${JSON.stringify(name)}`;
	}
}

function takeOnce(
	pseudo: PseudoFields,
	key: keyof PseudoFields,
	value: string,
	syntax: RegExp,
): string | undefined {
	if (pseudo[key] !== undefined) {
		return `:${key} is there twice`;
	}
	if (!syntax.test(value)) {
		return `:${key} has an invalid value`;
	}
	pseudo[key] = value;
	return undefined;
}

function problemOfPseudoFields({
	method,
	scheme,
	authority,
	path,
}: PseudoFields): string | undefined {
	if (method === undefined) {
		return ":method is missing";
	}
	if (method === "CONNECT") {
		if (scheme !== undefined || path !== undefined) {
			return "CONNECT must not have :scheme or :path";
		}
		return authority ? undefined : "CONNECT needs :authority";
	}
	if (scheme === undefined) {
		return ":scheme is missing";
	}
	if (path === undefined) {
		return ":path is missing";
	}
	if (!path.startsWith("/") && !(path === "*" && method === "OPTIONS")) {
		return ":path must begin with a slash";
	}
	return undefined;
}

function problemOfHost(authority: string | undefined, fields: Fields): string | undefined {
	const host = fieldValue(fields, "host");
	if (host === undefined) {
		return undefined;
	}
	if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
		return "host differs from :authority";
	}
	return countOf(fields, "host") === 1 && authoritySyntax.test(host)
		? undefined
		: "host is repeated, or has an invalid value";
}
