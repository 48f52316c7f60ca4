import type { Http2Implementation, Http2Server, Http2ServerOptions } from "./http2-server.ts";
import { NodeServer } from "./node-server.ts";
import { PlinthServer } from "./plinth-server.ts";

export function createHttp2Server(
	implementation: Http2Implementation,
	options: Http2ServerOptions,
): Http2Server {
	return implementation === "node" ? new NodeServer(options) : new PlinthServer(options);
}
