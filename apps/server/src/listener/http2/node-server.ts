import {
	createServer,
	type Http2Server as NodeHttp2Server,
	type ServerHttp2Session,
} from "node:http2";
import type { Socket } from "node:net";
import type { HttpConnection } from "../request-handler.ts";
import type { Http2Server, Http2ServerOptions } from "./http2-server.ts";
import { manageConnection, type NodeConnection } from "./node-connection.ts";
import { NodeStream } from "./node-stream.ts";
import { serveRequest } from "./serve-request.ts";

/** Serves HTTP/2 with `node:http2`. */
export class NodeServer implements Http2Server {
	readonly #options: Http2ServerOptions;
	readonly #server: NodeHttp2Server;
	readonly #connections = new Set<NodeConnection>();

	constructor(options: Http2ServerOptions) {
		const { limits, logger, streamErrors } = options;
		this.#options = options;
		this.#server = createServer({
			maxSessionMemory: limits.connectionMemoryMiB,
			settings: { maxConcurrentStreams: limits.streamsPerConnection },
			...(streamErrors && {
				streamResetBurst: streamErrors.burst,
				streamResetRate: streamErrors.perSecond,
			}),
		});
		this.#server.on("sessionError", (error) =>
			logger.debug({ err: error }, "an HTTP/2 connection failed"),
		);
	}

	serve(socket: Socket, head: Buffer): void {
		const { clock, limits, handler, onHeaders } = this.#options;
		socket.unshift(head);
		this.#server.once("session", (session) => {
			const managed = manageConnection(session, clock, limits.idleMs, () => socket.destroy());
			const connection = new SessionConnection(session, socket, this.#options);
			session.on("stream", (stream, headers, _flags, rawHeaders) =>
				serveRequest(new NodeStream(connection, stream, headers, rawHeaders), handler),
			);
			this.#connections.add(managed);
			session.once("close", () => this.#connections.delete(managed));
			session.once("stream", () => onHeaders(socket));
		});
		this.#server.emit("connection", socket);
	}

	close(): void {
		for (const connection of this.#connections) {
			connection.close(this.#options.limits.lingerMs);
		}
	}
}

/** A session of `node:http2`. */
class SessionConnection implements HttpConnection {
	readonly isMultiplexed = true;
	readonly isEncrypted: boolean;
	readonly remoteAddress: string;
	readonly #session: ServerHttp2Session;
	readonly #socket: Socket;
	readonly #options: Pick<Http2ServerOptions, "clock" | "limits">;

	constructor(
		session: ServerHttp2Session,
		socket: Socket,
		options: Pick<Http2ServerOptions, "clock" | "limits">,
	) {
		this.#session = session;
		this.#socket = socket;
		this.#options = options;
		this.isEncrypted = "encrypted" in socket;
		this.remoteAddress = session.socket.remoteAddress ?? "";
	}

	onceClosed(listener: () => void): void {
		this.#session.once("close", listener);
	}

	ping(done: () => void): void {
		const session = this.#session;
		const whenClosed = () => session.once("close", done);
		if (session.destroyed) {
			whenClosed();
		} else if (session.closed) {
			// Node sends no PING while a session is closing, which may take as long as its streams do. A client must
			// acknowledge SETTINGS as well. Node does not call back if the session is destroyed first.
			whenClosed();
			session.settings({}, (failure) => {
				if (failure === null) {
					session.off("close", done);
					done();
				}
			});
		} else {
			session.ping((failure) => (failure === null ? done() : whenClosed()));
		}
	}

	destroy(code: number): void {
		const { clock, limits } = this.#options;
		this.#session.destroy(undefined, code);
		// Node closes the socket when the client has taken what was written before, which may be never.
		const cut = clock.setTimer(limits.lingerMs, () => this.#socket.destroy());
		this.#socket.once("close", () => cut.cancel());
	}
}
