import { onTestFinished } from "vitest";
import { createServer, type Server, type ServerOptions } from "../server.ts";

/** A server on a free port, in memory where nothing else is said, stopped when the test is over. */
export async function startServer(options: Partial<ServerOptions> = {}): Promise<Server> {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		stopLimitMs: 5_000,
		...options,
	});
	await server.start();
	onTestFinished(() => server.stop());
	return server;
}
