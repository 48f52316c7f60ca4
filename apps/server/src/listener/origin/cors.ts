import { cors } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "../request-handler.ts";

/** Headers that browsers may send: those of the protocols, tokens, and trace contexts. */
const allowedHeaders = [...cors.allowedHeaders, "Authorization", "Traceparent", "Tracestate"];

/** The longest time that any browser caches the response to a preflight, in seconds. */
const maxAgeSeconds = 7_200;

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether a request is a CORS preflight (Fetch standard). */
export function isPreflight(request: HttpRequest): boolean {
	return (
		request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined
	);
}

/**
 * Responds to a preflight of an allowed origin. Allows both methods of the protocols, and every header that the
 * browser requests, so that services of modules can read their own headers. Credentials are not allowed: tokens are
 * sent in a header, and the server reads no cookies.
 */
export function sendPreflightResponse(
	request: HttpRequest,
	response: HttpResponse,
	origin: string,
): void {
	const requested = (request.header("access-control-request-headers") ?? "")
		.split(",")
		.map((name) => name.trim())
		.filter((name) => headerName.test(name));
	const names = new Map(
		[...allowedHeaders, ...requested].map((name) => [name.toLowerCase(), name]),
	);
	response.setHeader("access-control-allow-origin", origin);
	response.setHeader("access-control-allow-methods", cors.allowedMethods.join(", "));
	response.setHeader("access-control-allow-headers", [...names.values()].join(", "));
	response.setHeader("access-control-max-age", String(maxAgeSeconds));
	// A public page calls a server in a private network: its origin was allowed explicitly.
	if (request.header("access-control-request-private-network") === "true") {
		response.setHeader("access-control-allow-private-network", "true");
	}
	response.setHeader(
		"vary",
		"Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network",
	);
	response.writeHead(204);
	response.end();
}

/** Allows a page of an allowed origin to read the response, including errors and their details. */
export function exposeTo(response: HttpResponse, origin: string): void {
	response.setHeader("access-control-allow-origin", origin);
	response.setHeader("access-control-expose-headers", exposedHeaders);
}

const exposedHeaders = cors.exposedHeaders.join(", ");
