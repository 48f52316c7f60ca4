import { constants } from "node:crypto";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { Logger } from "@plinth/runtime";
import type { TlsMaterial } from "./tls-files.ts";

/**
 * No session is resumed: each connection shows the client's certificate anew, and is held against the
 * authorities that are there now.
 */
const tlsRules = { minVersion: "TLSv1.2", secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** What a TLS server is made with. */
export interface TlsServerOptions {
	/** With a `ca`, only clients that have a certificate of it are let in. */
	readonly material: TlsMaterial;
	/** How long a handshake may take, in milliseconds. */
	readonly handshakeMs: number;
	readonly logger: Logger;
	/** Takes the inside of each connection. */
	readonly onConnection: (socket: TLSSocket) => void;
}

/** Something that makes TLS of connections, which it gets as `connection` events. It has no port. */
export function createTlsServer(options: TlsServerOptions): Server {
	const { material, handshakeMs, logger, onConnection } = options;
	const server = createServer({
		...material,
		...tlsRules,
		requestCert: material.ca !== undefined,
		rejectUnauthorized: true,
		ALPNProtocols: ["h2", "http/1.1"],
		handshakeTimeout: handshakeMs,
	});
	server.on("secureConnection", (socket) => {
		socket.on("error", () => {});
		onConnection(socket);
	});
	server.on("tlsClientError", (error, socket) => {
		logger.debug({ err: error }, "a TLS handshake failed");
		socket.destroy();
	});
	return server;
}

/** Takes other certificates for new connections. @throws Error where they don't fit together. */
export function replaceTls(server: Server, material: TlsMaterial): void {
	server.setSecureContext({ ...material, ...tlsRules });
}
