import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** Handles one HTTP request of either protocol. Must not throw. */
export type RequestHandler = (
	request: IncomingMessage | Http2ServerRequest,
	response: ServerResponse | Http2ServerResponse,
) => void;

/** A request's path, without its query. */
export function pathOf(request: IncomingMessage | Http2ServerRequest): string {
	return (request.url ?? "").split("?", 1)[0] ?? "";
}

/** A request's headers, without the pseudo-headers of HTTP/2. */
export function headersOf(request: IncomingMessage | Http2ServerRequest): Headers {
	const headers = new Headers();
	for (const [name, value] of Object.entries(request.headers)) {
		if (!name.startsWith(":") && value !== undefined) {
			headers.set(name, Array.isArray(value) ? value.join(", ") : value);
		}
	}
	return headers;
}

/** Sends a response of text, whose last line is terminated if it is not. */
export function sendText(
	response: ServerResponse | Http2ServerResponse,
	status: number,
	text: string,
	contentType = "text/plain; charset=utf-8",
): void {
	const body = text.endsWith("\n") ? text : `${text}\n`;
	const headers = {
		"content-type": contentType,
		"content-length": Buffer.byteLength(body),
		"cache-control": "no-store",
	};
	// The two kinds of response share this signature, but not a type that says so.
	if ("stream" in response) {
		response.writeHead(status, headers);
	} else {
		response.writeHead(status, headers);
	}
	response.end(body);
}
