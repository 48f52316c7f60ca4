import { once } from "node:events";
import {
	createServer,
	type IncomingHttpHeaders,
	type ServerHttp2Session,
	type ServerHttp2Stream,
	type Settings,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A server of HTTP/2 that behaves as a test wants, so that each step of a fault is exact. */
export interface RawUpstream {
	readonly address: string;
	/** The calls that have arrived, health checks excluded. */
	readonly calls: readonly IncomingHttpHeaders[];
	/** Its open sessions. */
	readonly sessions: ReadonlySet<ServerHttp2Session>;
	/** What `/readyz` responds. */
	readyStatus: number;
	/** Closes the port and all sessions. */
	close(): void;
}

/** Handles a call after its head has arrived. */
export type RawHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Starts such a server, which is ready until the test says otherwise. */
export async function startUpstream(
	handler: RawHandler,
	settings: Settings = {},
): Promise<RawUpstream> {
	const server = createServer({ settings });
	const calls: IncomingHttpHeaders[] = [];
	const sessions = new Set<ServerHttp2Session>();
	server.on("session", (session) => {
		sessions.add(session);
		session.on("error", () => {});
		session.once("close", () => sessions.delete(session));
	});
	server.on("stream", (stream: ServerHttp2Stream, headers) => {
		stream.on("error", () => {});
		if (headers[":path"] === "/readyz") {
			stream.respond({ ":status": upstream.readyStatus });
			stream.end(upstream.readyStatus === 200 ? "ready" : "not ready\nthe test says so");
			return;
		}
		calls.push(headers);
		handler(stream, headers);
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const { port } = server.address() as AddressInfo;
	const upstream: RawUpstream = {
		address: `http://127.0.0.1:${port}`,
		calls,
		sessions,
		readyStatus: 200,
		close: () => {
			server.close();
			for (const session of sessions) {
				session.destroy();
			}
		},
	};
	onTestFinished(() => upstream.close());
	return upstream;
}

/** Responds with JSON, once the request has arrived. */
export function respondWith(value: object): RawHandler {
	return (stream) => {
		stream.resume();
		stream.on("end", () => {
			stream.respond({ ":status": 200, "content-type": "application/json" });
			stream.end(JSON.stringify(value));
		});
	};
}
