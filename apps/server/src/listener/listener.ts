import { createServer as createHttp1Server } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { RateLimit } from "@plinth/http2";
import type { Clock, Logger } from "@plinth/runtime";
import type { ListenAddress } from "../configuration/listen-address.ts";
import { Http1Call } from "./http1/http1-call.ts";
import { Http1Calls } from "./http1/http1-calls.ts";
import { createHttp2Server } from "./http2/create-http2-server.ts";
import type { Http2Implementation, Http2Server } from "./http2/http2-server.ts";
import type { ListenerLimits } from "./limits.ts";
import { listenError } from "./listen-error.ts";
import { detectProtocol } from "./protocol.ts";
import type { RequestHandler } from "./request-handler.ts";
import { SilentConnections } from "./silent-connections.ts";
import type { TlsMaterial } from "./tls/tls-files.ts";
import { createTlsServer, replaceTls } from "./tls/tls-server.ts";

/** Options of a listener. */
export interface ListenerOptions {
	readonly address: ListenAddress;
	/** Handles all requests of both protocols. Must not throw. */
	readonly handler: RequestHandler;
	readonly limits: ListenerLimits;
	/**
	 * How many streams of an HTTP/2 connection the client may reset, or end by a violation, before the connection is closed; as for
	 * any client by default.
	 */
	readonly streamErrors?: RateLimit;
	/** What serves HTTP/2; `plinth` by default. */
	readonly http2?: Http2Implementation;
	/** Makes the port speak TLS; with a `ca`, only to clients with a certificate of it. */
	readonly tls?: TlsMaterial;
	readonly clock: Clock;
	readonly logger: Logger;
}

/** An open port. */
export interface Listener {
	/** The address that it listens on, with the actual port. */
	readonly address: ListenAddress;
	/** Open connections. */
	readonly connections: number;
	/**
	 * Replaces the certificates for new connections; open connections continue.
	 *
	 * @throws Error if the listener does not speak TLS, or the certificates don't match their key.
	 */
	setTls(material: TlsMaterial): void;
	/**
	 * Accepts no more connections, serves new calls on open ones for `lingerMs`, lets running calls finish, closes
	 * each connection, and destroys the remaining ones after `limitMs`. Resolves when all connections are closed.
	 */
	close(limitMs: number): Promise<void>;
}

/**
 * Opens a port that serves HTTP/1.1 and HTTP/2, in plaintext or over TLS:
 *
 * ```
 *                       ┌ first bytes are the HTTP/2 preface ─▶ HTTP/2 server ─┐
 * connection ──▶ TLS? ──┤                                                     ├─▶ handler
 *                       └ anything else ──────────────────────▶ HTTP/1.1 server ┘
 * ```
 *
 * A server may open several, each with its own handler and limits.
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
	/** Accepted connections, below TLS. */
	readonly #sockets = new Set<Socket>();
	readonly #silent: SilentConnections;
	readonly #calls = new Http1Calls();
	readonly #serveHttp1: (socket: Socket) => void;
	#address: ListenAddress;

	constructor(options: ListenerOptions) {
		const { limits, handler, logger, clock, tls, http2 = "plinth", streamErrors } = options;
		this.#options = options;
		this.#silent = new SilentConnections(clock, limits.headersMs);
		this.#address = options.address;
		this.#http2 = createHttp2Server(http2, {
			...{ limits, streamErrors, handler, logger, clock },
			onHeaders: (socket) => this.#silent.headersArrived(socket),
		});
		this.#http1 = createHttp1Server({
			headersTimeout: limits.headersMs,
			requestTimeout: limits.requestMs,
			keepAliveTimeout: limits.idleMs,
			connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
		});
		this.#http1.on("request", (request, response) => {
			this.#silent.headersArrived(request.socket);
			this.#calls.add(request, response);
			const call = new Http1Call(request, response, this.#calls);
			handler(call, call);
		});
		this.#http1.maxConnections = limits.connections;
		this.#tls =
			tls &&
			createTlsServer({
				material: tls,
				handshakeMs: limits.headersMs,
				logger,
				onConnection: (socket) => this.#detect(socket),
			});
		// The HTTP/1.1 server owns the port, because only a listening server enforces its time limits. Its
		// connections pass through `#accept` before they reach it.
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
			throw new Error(
				"TLS can't be enabled on a plaintext listener: open another listener for TLS",
			);
		}
		replaceTls(this.#tls, material);
	}

	get address(): ListenAddress {
		return this.#address;
	}

	listen(): Promise<void> {
		const { address, logger } = this.#options;
		const server = this.#http1;
		return new Promise((resolve, reject) => {
			const onError = (cause: NodeJS.ErrnoException) => {
				reject(listenError(address, cause));
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
		// Not the method of the HTTP/1.1 server, which would also reset idle connections.
		const closed = new Promise<void>((resolve) =>
			NetServer.prototype.close.call(this.#http1, () => resolve()),
		);
		this.#silent.destroy();
		this.#http2.close();
		this.#calls.close();
		const linger = clock.setTimer(limits.lingerMs, () => this.#calls.stopLingering());
		const limit = clock.setTimer(limitMs, () => {
			logger.warn(
				{ connections: this.#sockets.size },
				"closing connections that did not end in time",
			);
			for (const socket of [...this.#sockets]) {
				socket.destroy();
			}
		});
		await closed;
		linger.cancel();
		limit.cancel();
		// Stops the timer with which it checks its connections. It reports that it is closed already.
		this.#http1.close(() => {});
	}

	#accept(socket: Socket): void {
		this.#sockets.add(socket);
		this.#silent.add(socket);
		socket.setNoDelay(true);
		socket.setKeepAlive(true, 30_000);
		socket.on("error", () => {});
		socket.once("close", () => this.#sockets.delete(socket));
		if (this.#tls === undefined) {
			this.#detect(socket);
		} else {
			this.#tls.emit("connection", socket);
		}
	}

	/** @param socket plaintext, or decrypted. */
	#detect(socket: Socket): void {
		detectProtocol(socket, (protocol, head) => {
			if (protocol === "http2") {
				// Unlike HTTP/1.1, HTTP/2 has no use for a connection whose peer has ended its side.
				socket.allowHalfOpen = false;
				this.#http2.serve(socket, head);
			} else {
				socket.unshift(head);
				this.#serveHttp1(socket);
			}
		});
	}
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
	return typeof address === "object" && address !== null;
}
