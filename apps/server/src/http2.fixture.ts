import type { Http2Implementation } from "./listener/http2/http2-server.ts";

/** What serves HTTP/2 in a test: Plinth's own framing, as by default, unless the file runs within a suite for `node:http2`. */
export function http2OfTests(): { readonly http2: Http2Implementation } {
	return { http2: process.env.PLINTH_HTTP2 === "node" ? "node" : "plinth" };
}
