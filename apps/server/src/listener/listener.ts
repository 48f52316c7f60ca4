import { constants } from "node:crypto";
import {
	createServer as createHttp1Server,
	type IncomingMessage,
	type ServerResponse,
} from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import { formatListenAddress, type ListenAddress } from "../configuration/listen-address.ts";
import { type Http2Connection, watchOver } from "./http2-connection.ts";
import type { ListenerLimits } from "./limits.ts";
import { detectProtocol } from "./protocol.ts";
import type { RequestHandler } from "./request-handler.ts";
import type { TlsMaterial } from "./tls-files.ts";

/** Options of a listener. */
export interface ListenerOptions {
	readonly address: ListenAddress;
	/** Answers all requests of both protocols. Must not throw. */
	readonly handler: RequestHandler;
	readonly limits: ListenerLimits;
	/** Speak TLS; with a `ca`, only to clients that have a certificate of it. */
	readonly tls?: TlsMaterial;
	readonly clock: Clock;
	readonly logger: Logger;
}

/** An address can't be listened on. The message names it, and the way out. */
export class ListenError extends Error {
	override readonly name = "ListenError";
}

/** An open port. */
export interface Listener {
	/** Where it listens, with the real port. */
	readonly address: ListenAddress;
	/** Open connections. */
	readonly connections: number;
	/**
	 * Takes other certificates for new connections; those that are open go on.
	 *
	 * @throws Error where the listener does not speak TLS, or they don't fit together.
	 */
	setTls(material: TlsMaterial): void;
	/**
	 * Accepts no more connections, lets running calls finish, answers for `lingerMs` what still comes,
	 * closes each connection, and cuts what is left after `limitMs`. Resolves when there is no connection any more.
	 */
	close(limitMs: number): Promise<void>;
}

/**
 * Opens a port that speaks HTTP/1.1 and HTTP/2, in clear text or over TLS:
 *
 * ```
 *                       ┌ first bytes are the HTTP/2 preface ─▶ HTTP/2 session ┐
 * connection ──▶ TLS? ──┤                                                     ├─▶ handler
 *                       └ anything else ──────────────────────▶ HTTP/1.1 server ┘
 * ```
 *
 * A server may open several, each with a handler and limits of its own.
 *
 * @throws ListenError.
 */
export async function openListener(options: ListenerOptions): Promise<Listener> {
	const listener = new PortListener(options);
	await listener.listen();
	return listener;
}

class PortListener implements Listener {
	readonly #options: ListenerOptions;
	readonly #http1;
	readonly #http2: Http2Server;
	readonly #tls: TlsServer | undefined;
	/** Connections as they were accepted, below TLS. */
	readonly #sockets = new Set<Socket>();
	/** Connections that have not sent complete headers yet, by their ends: TLS has another socket. */
	readonly #silent = new Map<string, { readonly socket: Socket; readonly timer: Timer }>();
	readonly #http2Connections = new Set<Http2Connection>();
	/** HTTP/1.1 calls in progress. */
	readonly #calls = new Map<ServerResponse, IncomingMessage>();
	readonly #serveHttp1: (socket: Socket) => void;
	#closing = false;
	/** Whether connections between two calls are still left open, while closing. */
	#lingering = false;
	#address: ListenAddress;

	constructor(options: ListenerOptions) {
		const { limits, handler, logger } = options;
		this.#options = options;
		this.#address = options.address;
		this.#http2 = createHttp2Server(
			{
				maxSessionMemory: limits.connectionMemoryMiB,
				settings: { maxConcurrentStreams: limits.streamsPerConnection },
			},
			handler,
		);
		this.#http2.on("sessionError", (error) =>
			logger.debug({ err: error }, "an HTTP/2 connection failed"),
		);
		this.#http1 = createHttp1Server({
			headersTimeout: limits.headersMs,
			requestTimeout: limits.requestMs,
			keepAliveTimeout: limits.idleMs,
			connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
		});
		this.#http1.on("request", (request, response) => this.#call(request, response));
		this.#http1.maxConnections = limits.connections;
		this.#tls = options.tls && this.#createTls(options.tls);
		// The HTTP/1.1 server owns the port, since only a server that listens enforces its time
		// limits. Its connections pass through here before they reach it.
		const serveHttp1 = this.#http1.listeners("connection");
		this.#http1.removeAllListeners("connection");
		this.#http1.on("connection", (socket: Socket) => {
			this.#accept(socket);
		});
		this.#serveHttp1 = (socket) => {
			for (const serve of serveHttp1) {
				serve.call(this.#http1, socket);
			}
		};
	}

	get connections(): number {
		return this.#sockets.size;
	}

	setTls(material: TlsMaterial): void {
		if (this.#tls === undefined) {
			throw new Error("the listener speaks clear text: open another one for TLS");
		}
		this.#tls.setSecureContext({ ...material, ...tlsRules });
	}

	get address(): ListenAddress {
		return this.#address;
	}

	listen(): Promise<void> {
		const { address, logger } = this.#options;
		const server = this.#http1;
		return new Promise((resolve, reject) => {
			const onError = (cause: NodeJS.ErrnoException) => {
				reject(new ListenError(cannotListen(address, cause), { cause }));
			};
			server.once("error", onError);
			server.listen({ host: address.host, port: address.port }, () => {
				server.off("error", onError);
				server.on("error", (error) => logger.error({ err: error }, "accepting connections failed"));
				const bound = server.address();
				if (isAddressInfo(bound)) {
					this.#address = { host: address.host, port: bound.port };
				}
				resolve();
			});
		});
	}

	async close(limitMs: number): Promise<void> {
		const { clock, limits, logger } = this.#options;
		this.#closing = true;
		// Not that of the HTTP/1.1 server, which would also reset connections between two calls.
		const closed = new Promise<void>((resolve) =>
			NetServer.prototype.close.call(this.#http1, () => resolve()),
		);
		for (const { socket } of [...this.#silent.values()]) {
			socket.destroy();
		}
		for (const connection of this.#http2Connections) {
			connection.close(limits.lingerMs);
		}
		for (const [response, request] of this.#calls) {
			this.#endConnectionAfter(request, response);
		}
		this.#lingering = true;
		const linger = clock.setTimer(limits.lingerMs, () => {
			this.#lingering = false;
			this.#http1.closeIdleConnections();
		});
		const limit = clock.setTimer(limitMs, () => {
			logger.warn({ connections: this.#sockets.size }, "cutting connections");
			for (const socket of [...this.#sockets]) {
				socket.destroy();
			}
		});
		await closed;
		linger.cancel();
		limit.cancel();
		// What it checks its connections with ends only so; that it is closed already is no news.
		this.#http1.close(() => {});
	}

	#createTls(material: TlsMaterial): TlsServer {
		const { limits, logger } = this.#options;
		const server = createTlsServer({
			...material,
			...tlsRules,
			requestCert: material.ca !== undefined,
			rejectUnauthorized: true,
			ALPNProtocols: ["h2", "http/1.1"],
			handshakeTimeout: limits.headersMs,
		});
		server.on("secureConnection", (socket) => {
			socket.on("error", () => {});
			this.#detect(socket);
		});
		server.on("tlsClientError", (error, socket) => {
			logger.debug({ err: error }, "a TLS handshake failed");
			socket.destroy();
		});
		return server;
	}

	#accept(socket: Socket): void {
		const { clock, limits } = this.#options;
		const ends = endsOf(socket);
		this.#sockets.add(socket);
		this.#silent.set(ends, {
			socket,
			timer: clock.setTimer(limits.headersMs, () => socket.destroy()),
		});
		socket.setNoDelay(true);
		socket.setKeepAlive(true, 30_000);
		socket.on("error", () => {});
		socket.once("close", () => {
			if (this.#silent.get(ends)?.socket === socket) {
				this.#headersArrived(ends);
			}
			this.#sockets.delete(socket);
		});
		if (this.#tls === undefined) {
			this.#detect(socket);
		} else {
			this.#tls.emit("connection", socket);
		}
	}

	/** @param socket in clear text, or the inside of TLS. */
	#detect(socket: Socket): void {
		detectProtocol(socket, (protocol) => {
			if (protocol === "http2") {
				this.#serveHttp2(socket);
			} else {
				this.#serveHttp1(socket);
			}
		});
	}

	#headersArrived(ends: string): void {
		this.#silent.get(ends)?.timer.cancel();
		this.#silent.delete(ends);
	}

	#serveHttp2(socket: Socket): void {
		const { clock, limits } = this.#options;
		// Unlike the HTTP/1.1 server, which made this socket, an HTTP/2 session does not end its
		// side when the peer ends the other.
		socket.allowHalfOpen = false;
		this.#http2.once("session", (session) => {
			const connection = watchOver(session, clock, limits.idleMs, () => socket.destroy());
			this.#http2Connections.add(connection);
			session.once("close", () => this.#http2Connections.delete(connection));
			session.once("stream", () => this.#headersArrived(endsOf(socket)));
		});
		this.#http2.emit("connection", socket);
	}

	#call(request: IncomingMessage, response: ServerResponse): void {
		this.#headersArrived(endsOf(request.socket));
		this.#calls.set(response, request);
		response.once("close", () => this.#calls.delete(response));
		if (this.#closing) {
			this.#endConnectionAfter(request, response);
		}
		this.#options.handler(request, response);
	}

	#endConnectionAfter(request: IncomingMessage, response: ServerResponse): void {
		if (response.headersSent) {
			// The client does not know that the connection ends: it may have sent another call.
			response.once("finish", () => {
				if (!this.#lingering) {
					request.socket.destroySoon();
				}
			});
		} else {
			response.setHeader("connection", "close");
		}
	}
}

/**
 * No session is resumed: each connection shows the client's certificate anew, and is held against the
 * authorities that are there now.
 */
const tlsRules = { minVersion: "TLSv1.2", secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** Both ends of a connection, which no other open one has; the same below and within TLS. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
	return `${remoteAddress} ${remotePort} ${localAddress}`;
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
	return typeof address === "object" && address !== null;
}

function cannotListen(address: ListenAddress, cause: NodeJS.ErrnoException): string {
	const where = formatListenAddress(address);
	switch (cause.code) {
		case "EADDRINUSE":
			return `can't listen on ${where}: another program listens there; stop it, or choose another address with --listen`;
		case "EACCES":
			return `can't listen on ${where}: not permitted; choose a port above 1023 with --listen`;
		case "EADDRNOTAVAIL":
		case "ENOTFOUND":
			return `can't listen on ${where}: this machine has no such address; choose another with --listen`;
		default:
			return `can't listen on ${where}: ${cause.message}`;
	}
}
