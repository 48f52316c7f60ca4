import { Code } from "@connectrpc/connect";
import { type RequestRefusal, refuseRequest } from "../refuse-request.ts";
import type { HttpRequest, RequestHandler } from "../request-handler.ts";
import { exposeTo, isPreflight, sendPreflightResponse } from "./cors.ts";
import { type Host, isLoopbackName, parseHost } from "./host-header.ts";

/** Why a request was refused before it began, for metrics. `waiting`: too many requests wait for their turn. */
export type RefusedFor = "host" | "origin" | "waiting";

/** The hosts and origins that a listener accepts. */
export interface OriginPolicy {
	/** The scheme of the listener. */
	readonly scheme: "http" | "https";
	/**
	 * Names that are accepted as Host, in lower case, in addition to loopback names and IP addresses. If absent, all are.
	 */
	readonly allowedHosts?: ReadonlySet<string>;
	/** Origins in addition to the listener's own, as returned by `parseOrigin`. */
	readonly allowedOrigins: ReadonlySet<string>;
	/** Called with each refusal. */
	readonly onRefused?: (reason: RefusedFor) => void;
	/** Called with each request that gets its response here, before the response is written. */
	readonly onResponse?: RequestHandler;
}

/**
 * Refuses requests of web pages that are not allowed. Browsers send requests on behalf of any page to any address,
 * including this machine, and two headers distinguish such requests from those of programs:
 *
 * - `Host` is the name that the browser looked up. A page at `http://evil.example:7575` whose name now resolves to
 *   127.0.0.1 is same-origin with this server for the browser, and its requests have `Host: evil.example:7575`. An IP
 *   address in Host was never looked up.
 * - `Origin` is the origin of the page. A browser sends it with every request that is not a GET or HEAD, and with
 *   cross-origin reads whose response the page can see.
 *
 * Both are checked on all paths, before the request is read. GETs without Origin, such as those of an image element,
 * are recognized by `Sec-Fetch-Site`, if the browser sends it; following a link is allowed.
 *
 * Requests without a Host header, which HTTP/1.0 allows, pass: no browser sends them.
 */
export function checkOrigin(policy: OriginPolicy, next: RequestHandler): RequestHandler {
	const { allowedOrigins, onRefused } = policy;
	const isCors = allowedOrigins.size > 0;
	return (request, response) => {
		if (isCors) {
			// Set even if the request has no Origin: a cache must not serve one origin the response for another.
			response.setHeader("vary", "Origin");
		}
		const host = hostOf(request);
		const refused = hostRefusal(host, policy.allowedHosts);
		if (refused !== undefined) {
			onRefused?.("host");
			policy.onResponse?.(request, response);
			refuseRequest(request, response, refused);
			return;
		}
		const origin = request.header("origin");
		if (origin === undefined) {
			if (isCrossSiteRead(request)) {
				onRefused?.("origin");
				policy.onResponse?.(request, response);
				refuseRequest(request, response, crossSite);
			} else {
				next(request, response);
			}
			return;
		}
		if (allowedOrigins.has(origin)) {
			if (isPreflight(request)) {
				policy.onResponse?.(request, response);
				sendPreflightResponse(request, response, origin);
			} else {
				exposeTo(response, origin);
				next(request, response);
			}
		} else if (host !== "malformed" && isOwn(origin, policy.scheme, host)) {
			next(request, response);
		} else {
			onRefused?.("origin");
			policy.onResponse?.(request, response);
			refuseRequest(request, response, refusedOrigin(origin));
		}
	};
}

/**
 * Whether a request passes `checkOrigin` for its Host, and because no browser sends it for a page. An agent that knows the
 * allowed hosts of its servers can respond to it as they do.
 */
export function isOfProgram(
	request: Pick<HttpRequest, "authority" | "hasOneHost" | "header">,
	allowedHosts: ReadonlySet<string> | undefined,
): boolean {
	return (
		request.header("origin") === undefined &&
		request.header("sec-fetch-site") === undefined &&
		hostRefusal(hostOf(request), allowedHosts) === undefined
	);
}

const malformedHost: RequestRefusal = {
	code: Code.InvalidArgument,
	message: "the request needs one Host header: a host name or an IP address, with an optional port",
};

const crossSite: RequestRefusal = {
	code: Code.PermissionDenied,
	message:
		"a page of another site sent this request without an Origin header: send it in CORS mode",
};

/**
 * Why `checkOrigin` refuses a request whose Host is malformed, whichever hosts are allowed. An agent refuses such a request
 * itself: it can't forward it.
 *
 * @returns `undefined` if the Host is not malformed, or if there is none.
 */
export function malformedHostRefusal(
	request: Pick<HttpRequest, "authority" | "hasOneHost">,
): RequestRefusal | undefined {
	return hostOf(request) === "malformed" ? malformedHost : undefined;
}

/** The host that a request names. */
function hostOf({
	authority,
	hasOneHost,
}: Pick<HttpRequest, "authority" | "hasOneHost">): Host | "malformed" | undefined {
	if (!hasOneHost) {
		return "malformed";
	}
	return authority === undefined ? undefined : (knownHost(authority) ?? "malformed");
}

/** How many hosts are remembered: a server has few names. */
const rememberedHosts = 1_000;

/** Longer ones are not remembered, in characters: no name in the DNS is as long, and any client can send 16 KiB. */
const longestHost = 260;

const hosts = new Map<string, Host>();

/** `parseHost`, at the cost of a look-up for hosts that were seen before. */
function knownHost(authority: string): Host | undefined {
	const known = hosts.get(authority);
	if (known !== undefined) {
		return known;
	}
	const host = parseHost(authority);
	const isUsual = authority.length <= longestHost && hosts.size < rememberedHosts;
	if (host !== undefined && isUsual) {
		hosts.set(authority, host);
	}
	return host;
}

function hostRefusal(
	host: Host | "malformed" | undefined,
	allowedHosts: ReadonlySet<string> | undefined,
): RequestRefusal | undefined {
	if (host === "malformed") {
		return malformedHost;
	}
	if (
		host === undefined ||
		allowedHosts === undefined ||
		host.kind === "address" ||
		isLoopbackName(host.name) ||
		allowedHosts.has(host.name)
	) {
		return undefined;
	}
	const name = JSON.stringify(shortened(host.name));
	return {
		code: Code.PermissionDenied,
		message: `host ${name} is not allowed: a server without tokens accepts localhost, IP addresses and the names in allowedHosts, even with --allow-anonymous. If the name is this server's, start it with --allowed-hosts ${shortened(host.name)}`,
	};
}

function refusedOrigin(origin: string): RequestRefusal {
	return {
		code: Code.PermissionDenied,
		message: `origin ${JSON.stringify(shortened(origin))} is not allowed: to let its pages call this server, add it to cors.allowedOrigins (--cors-allowed-origins)`,
	};
}

/** Whether an origin is that of the host to which the request was sent. */
function isOwn(origin: string, scheme: "http" | "https", host: Host | undefined): boolean {
	if (host === undefined) {
		return false;
	}
	const defaultPort = scheme === "http" ? "80" : "443";
	const port = host.port === "" || Number(host.port) === Number(defaultPort) ? "" : `:${host.port}`;
	return (
		origin === `${scheme}://${host.name}${port}` || origin === `${scheme}://${host.name}.${port}`
	);
}

/** Whether a page of another site caused a request other than by following a link, according to the browser. */
function isCrossSiteRead(request: HttpRequest): boolean {
	const site = request.header("sec-fetch-site");
	return (
		(site === "cross-site" || site === "same-site") &&
		request.header("sec-fetch-mode") !== "navigate"
	);
}

/** The beginning of a value, enough to recognize it. */
function shortened(value: string): string {
	return value.length <= 100 ? value : `${value.slice(0, 100)}…`;
}
