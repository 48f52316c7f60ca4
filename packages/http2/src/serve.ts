import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Http2Connection, RequestHandler, ServeOptions } from "./http2.ts";
import { ServerConnection } from "./server/server-connection.ts";

/**
 * Serves HTTP/2 to one client: over TLS after ALPN has chosen `h2`, or on a plain socket with prior knowledge. The
 * connection owns the socket from now on.
 */
export function serveHttp2(
	socket: Duplex,
	options: ServeOptions,
	onRequest: RequestHandler,
): Http2Connection {
	if (socket instanceof Socket) {
		// Related bytes are already written together: nothing is gained by waiting for more.
		socket.setNoDelay(true);
	}
	return new ServerConnection(socket, options, onRequest);
}
