import type { Socket } from "node:net";
import type { Http2Limits } from "@plinth/http2";
import type { ListenerLimits } from "../limits.ts";
import type { Http2Server, Http2ServerOptions } from "./http2-server.ts";
import { PlinthConnection } from "./plinth-connection.ts";

/** Serves HTTP/2 with `@plinth/http2`. */
export class PlinthServer implements Http2Server {
	readonly #options: Http2ServerOptions;
	readonly #limits: Partial<Http2Limits>;
	readonly #connections = new Set<PlinthConnection>();

	constructor(options: Http2ServerOptions) {
		this.#options = options;
		const { limits, streamErrors } = options;
		this.#limits = { ...http2Limits(limits), ...(streamErrors && { streamErrors }) };
	}

	serve(socket: Socket, head: Buffer): void {
		const connection = new PlinthConnection(socket, this.#options);
		this.#connections.add(connection);
		socket.once("close", () => this.#connections.delete(connection));
		connection.start(head, this.#limits);
	}

	close(): void {
		for (const connection of this.#connections) {
			connection.close();
		}
	}
}

/** The window that HTTP/2 begins with, in bytes. */
const streamWindowBytes = 65_535;

/** The limits of each connection. All others are the package's own. */
function http2Limits(limits: ListenerLimits): Partial<Http2Limits> {
	const memoryBytes = Math.min(limits.connectionMemoryMiB * 1024 ** 2, 2 ** 31 - 1);
	return {
		maxConcurrentStreams: limits.streamsPerConnection,
		streamWindowBytes,
		// As large as the windows of many streams together, so that a stream whose body waits stops no other.
		connectionWindowBytes: Math.max(streamWindowBytes, memoryBytes),
		maxUnsentBytes: memoryBytes,
		// Streams report all bytes that they have sent, so that exchanges count those that they have not.
		streamHighWaterMark: 0,
		// A silent connection is closed by the listener.
		prefaceTimeoutMs: Number.POSITIVE_INFINITY,
		headerBlockTimeoutMs: limits.headersMs,
		// Exchanges end responses that make no progress, and connections whose client does not read.
		stallTimeoutMs: Number.POSITIVE_INFINITY,
		closeTimeoutMs: limits.lingerMs,
	};
}
