import { isIP } from "node:net";

/** The host in a Host header or an `:authority`, in lower case. */
export type Host =
	| { readonly kind: "address"; readonly name: string; readonly port: string }
	/** Without a trailing dot. */
	| { readonly kind: "name"; readonly name: string; readonly port: string };

const pattern = /^(?:\[(?<v6>[0-9a-f:.]+)\]|(?<name>[a-z0-9._-]+))(?::(?<port>\d{1,5}))?$/;

/**
 * Parses the value of a Host header. Returns `undefined` if it is malformed: it contains userinfo, a path, a scheme, or
 * characters that no host name has.
 *
 * Only the form to which the WHATWG URL standard serializes an address counts as an address. Browsers normalize
 * `0x7f.1` and `127.1` before they send them; from other clients they are names, which a DNS server may resolve.
 */
export function parseHost(value: string): Host | undefined {
	const groups = pattern.exec(value.toLowerCase())?.groups;
	if (groups === undefined) {
		return undefined;
	}
	const { v6, name = "", port = "" } = groups;
	if (Number(port) > 65_535) {
		return undefined;
	}
	if (v6 !== undefined) {
		return isIP(v6) === 6 ? { kind: "address", name: `[${v6}]`, port } : undefined;
	}
	if (isIP(name) === 4) {
		return { kind: "address", name, port };
	}
	if (name.startsWith(".") || name.includes("..")) {
		return undefined;
	}
	return { kind: "name", name: name.endsWith(".") ? name.slice(0, -1) : name, port };
}

/**
 * Whether a name, in lower case and without a trailing dot, always means this machine: browsers and resolvers do not
 * look such names up (RFC 6761, section 6.3).
 */
export function isLoopbackName(name: string): boolean {
	return name === "localhost" || name.endsWith(".localhost");
}

/**
 * The name in the form in which hosts are compared, or `undefined` if it is not a plain host name: it has a port, a
 * scheme or a wildcard.
 */
export function parseHostName(value: string): string | undefined {
	const host = parseHost(value);
	return host?.port === "" ? host.name : undefined;
}

/**
 * A web origin, such as `https://console.example:8443`, in the form that browsers send. Returns `undefined` if the
 * value is anything else, including `*` and `null`: every sandboxed page has the origin `null`.
 */
export function parseOrigin(value: string): string | undefined {
	if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) {
		return undefined;
	}
	const { origin, username, password, pathname, search, hash } = new URL(value);
	const rest = username + password + search + hash;
	return rest === "" && pathname === "/" && !origin.includes("*") ? origin : undefined;
}

/** The problem of a value that `parseHostName` does not accept. */
export const hostForm =
	"is not a host name such as plinth.example, without a scheme, port or wildcard";

/** The problem of a value that `parseOrigin` does not accept. */
export const originForm =
	"is not an http or https origin such as https://console.example, with an optional port and no path; * and null are not accepted";
