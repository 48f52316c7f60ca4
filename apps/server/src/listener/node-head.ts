import type { RequestHead } from "@plinth/rpc-server";
import type { RequestHandler } from "./request-handler.ts";

type Request = Parameters<RequestHandler>[0];

/** How many authorities are known to be valid: a server has few names. */
const knownAuthorities = 1_000;

const validAuthorities = new Set<string>();

/** The head of a request of Node. */
export class NodeHead implements RequestHead {
	readonly #request: Request;

	constructor(request: Request) {
		this.#request = request;
	}

	get httpVersion(): string {
		return this.#request.httpVersion;
	}

	get method(): string {
		return this.#request.method ?? "";
	}

	get target(): string {
		return this.#request.url ?? "";
	}

	get url(): string {
		return urlOf(this.#request)?.toString() ?? "";
	}

	/** Whether the request has an authority that is a host name or an address, with an optional port. */
	get hasAuthority(): boolean {
		const authority = authorityOf(this.#request);
		if (authority === undefined || validAuthorities.has(authority)) {
			return authority !== undefined;
		}
		const isValid = URL.canParse("/", `http://${authority}`);
		if (isValid && validAuthorities.size < knownAuthorities) {
			validAuthorities.add(authority);
		}
		return isValid;
	}

	header(name: string): string | undefined {
		const value = this.#request.headers[name];
		return Array.isArray(value) ? value.join(", ") : value;
	}

	*headers(): Generator<readonly [string, string], undefined> {
		for (const [name, value] of Object.entries(this.#request.headers)) {
			if (!name.startsWith(":") && value !== undefined) {
				yield [name, Array.isArray(value) ? value.join(", ") : value];
			}
		}
	}
}

function authorityOf(request: Request): string | undefined {
	return "authority" in request ? request.authority : request.headers.host;
}

/** The URL of a request; `undefined` if its authority is missing or malformed. */
export function urlOf(request: Request): URL | undefined {
	const authority = authorityOf(request);
	// For HTTP/2 not the request's socket, which is a proxy that is created on each access.
	const transport = "stream" in request ? request.stream.session : request.socket;
	const isEncrypted = transport !== undefined && "encrypted" in transport && transport.encrypted;
	const scheme = isEncrypted === true ? "https" : "http";
	return authority === undefined
		? undefined
		: (URL.parse(request.url ?? "", `${scheme}://${authority}`) ?? undefined);
}
