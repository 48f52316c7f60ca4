import { constants } from "node:crypto";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { Logger } from "@plinth/runtime";
import type { TlsMaterial } from "./tls-files.ts";

/**
 * No session is resumed: each connection presents the client's certificate, which is verified against the current
 * authorities.
 */
const tlsRules = { minVersion: "TLSv1.2", secureOptions: constants.SSL_OP_NO_TICKET } as const;

/** Options of `createTlsServer`. */
export interface TlsServerOptions {
	/** With a `ca`, only clients that present a certificate of that authority are accepted. */
	readonly material: TlsMaterial;
	/** How long a handshake may take, in milliseconds. */
	readonly handshakeMs: number;
	readonly logger: Logger;
	/** Called with the decrypted socket of each connection. */
	readonly onConnection: (socket: TLSSocket) => void;
}

/** Creates a server that decrypts connections, which are passed to it as `connection` events. It has no port. */
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

/** Replaces the certificates for new connections. @throws Error if they don't match each other. */
export function replaceTls(server: Server, material: TlsMaterial): void {
	server.setSecureContext({ ...material, ...tlsRules });
}
