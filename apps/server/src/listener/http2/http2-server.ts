import type { Socket } from "node:net";
import type { RateLimit } from "@plinth/http2";
import type { Clock, Logger } from "@plinth/runtime";
import type { ListenerLimits } from "../limits.ts";
import type { RequestHandler } from "../request-handler.ts";

/** What serves HTTP/2: `node:http2`, or the package `@plinth/http2`. */
export type Http2Implementation = "node" | "plinth";

/** Options of an HTTP/2 server. */
export interface Http2ServerOptions {
	readonly handler: RequestHandler;
	readonly limits: ListenerLimits;
	/** The budget of each connection for streams that the client resets or violates; that for any client by default. */
	readonly streamErrors?: RateLimit | undefined;
	readonly clock: Clock;
	readonly logger: Logger;
	/** Called when a connection has sent its first request. */
	readonly onHeaders: (socket: Socket) => void;
}

/** Serves HTTP/2 on the sockets of a listener, plaintext or decrypted. */
export interface Http2Server {
	/** Serves a connection, of which `head` was read already. Closes it when it has had no stream for `idleMs`. */
	serve(socket: Socket, head: Buffer): void;
	/**
	 * Serves new requests for `lingerMs`, and in that time tells the clients to send no more. Then closes each connection
	 * once its running requests have finished.
	 */
	close(): void;
}
