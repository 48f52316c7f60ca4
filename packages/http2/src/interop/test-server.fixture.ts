import { once } from "node:events";
import http2 from "node:http2";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { onTestFinished } from "vitest";
import type { Http2Connection, RequestHandler, ServeOptions } from "../http2.ts";
import { serveHttp2 } from "../serve.ts";

/** A server of this package on a port of its own. */
export interface TestServer {
	readonly url: string;
	/** In the order in which they were opened. */
	readonly connections: readonly Http2Connection[];
	/** A client of node:http2, which is destroyed when the test ends. */
	connect(
		options?: http2.ClientSessionOptions | http2.SecureClientSessionOptions,
	): http2.ClientHttp2Session;
}

/** Listens until the test ends; over TLS if there are options for it. */
export async function startServer(
	onRequest: RequestHandler,
	options: ServeOptions = {},
	tls?: TlsOptions,
): Promise<TestServer> {
	const connections: Http2Connection[] = [];
	const server: Server =
		tls === undefined
			? createServer((socket) => connections.push(serveHttp2(socket, options, onRequest)))
			: createTlsServer({ ...tls, ALPNProtocols: ["h2"] }, (socket) =>
					connections.push(serveHttp2(socket, options, onRequest)),
				);
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(async () => {
		for (const connection of connections) {
			connection.destroy();
		}
		server.close();
		await Promise.all(connections.map(({ closed }) => closed));
	});
	const address = server.address();
	const port = address !== null && typeof address === "object" ? address.port : 0;
	const url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
	return {
		url,
		connections,
		connect: (clientOptions) => {
			const client = http2.connect(url, clientOptions);
			client.on("error", () => {});
			onTestFinished(() => client.destroy());
			return client;
		},
	};
}
