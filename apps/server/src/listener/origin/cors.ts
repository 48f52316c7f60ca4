import { cors } from "@connectrpc/connect";
import type { RequestHandler } from "../request-handler.ts";

type Request = Parameters<RequestHandler>[0];
type Response = Parameters<RequestHandler>[1];

/** Headers that browsers may send: those of the protocols, tokens, and trace contexts. */
const allowedHeaders = [...cors.allowedHeaders, "Authorization", "Traceparent", "Tracestate"];

/** The longest that any browser keeps the answer to a preflight, in seconds. */
const maxAgeSeconds = 7_200;

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether a browser asks by this request if it may send another one (Fetch standard, CORS preflight). */
export function isPreflight(request: Request): boolean {
	return (
		request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined
	);
}

/**
 * Answers a preflight of an allowed origin: both methods of the protocols, and every header that the browser
 * asks about, so that services of modules may read headers of their own. Credentials are not allowed: tokens
 * are sent in a header, and nothing reads cookies.
 */
export function answerPreflight(request: Request, response: Response, origin: string): void {
	const { headers } = request;
	const asked = String(headers["access-control-request-headers"] ?? "")
		.split(",")
		.map((name) => name.trim())
		.filter((name) => headerName.test(name));
	const names = new Map([...allowedHeaders, ...asked].map((name) => [name.toLowerCase(), name]));
	response.setHeader("access-control-allow-origin", origin);
	response.setHeader("access-control-allow-methods", cors.allowedMethods.join(", "));
	response.setHeader("access-control-allow-headers", [...names.values()].join(", "));
	response.setHeader("access-control-max-age", String(maxAgeSeconds));
	// A page from the internet that calls a server of a private network: its origin was allowed by name.
	if (headers["access-control-request-private-network"] === "true") {
		response.setHeader("access-control-allow-private-network", "true");
	}
	response.setHeader(
		"vary",
		"Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network",
	);
	response.statusCode = 204;
	response.end();
}

/** Lets a page of an allowed origin read the response to come, errors and their details included. */
export function exposeTo(response: Response, origin: string): void {
	response.setHeader("access-control-allow-origin", origin);
	response.setHeader("access-control-expose-headers", exposedHeaders);
}

const exposedHeaders = cors.exposedHeaders.join(", ");
