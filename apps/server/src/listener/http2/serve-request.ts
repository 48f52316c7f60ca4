import type { HttpRequest, HttpResponse, RequestHandler } from "../request-handler.ts";

/** A stream, which may have to tell its client to send the body. */
export interface Http2Call extends HttpRequest, HttpResponse {
	/** Sends an informational response with status 100. */
	continue(): void;
}

/** Passes a request to the handler, unless it needs what no handler provides. */
export function serveRequest(call: Http2Call, handler: RequestHandler): void {
	const expected = call.header("expect");
	if (call.method === "CONNECT") {
		call.writeHead(405);
		call.end();
	} else if (expected === undefined) {
		handler(call, call);
	} else if (expected === "100-continue") {
		call.continue();
		handler(call, call);
	} else {
		call.writeHead(417);
		call.end();
	}
}
