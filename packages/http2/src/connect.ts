import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ClientConnection } from "./client/client-connection.ts";
import type { ConnectOptions, Http2ClientConnection } from "./http2.ts";

/**
 * Speaks HTTP/2 to one server, as its client: over TLS after ALPN has chosen `h2`, or on a plain socket with prior
 * knowledge. The socket may still be connecting. The connection owns it from now on.
 */
export function connectHttp2(socket: Duplex, options: ConnectOptions = {}): Http2ClientConnection {
	if (socket instanceof Socket) {
		// Related bytes are already written together: nothing is gained by waiting for more.
		socket.setNoDelay(true);
	}
	return new ClientConnection(socket, options);
}
