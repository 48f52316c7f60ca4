import type { HttpRequest, HttpResponse, RequestHandler } from "../request-handler.ts";

/** A stream, which may have to tell its client that it can send the body. */
export interface Http2Call extends HttpRequest, HttpResponse {
	/** Sends an informational response with status 100. */
	continue(): void;
}

/** Passes a request to the handler. A client that waits before it sends the body is told to send it. */
export function serveRequest(call: Http2Call, handler: RequestHandler): void {
	if (call.header("expect") === "100-continue" && call.method !== "CONNECT") {
		call.continue();
	}
	handler(call, call);
}
