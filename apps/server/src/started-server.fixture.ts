import { FakeClock } from "@plinth/runtime/testing";
import { onTestFinished } from "vitest";
import { http2OfTests } from "./http2.fixture.ts";
import { createServer, type Server } from "./server.ts";
import type { ServerOptions } from "./server-options.ts";

/** A server on a free port, in memory by default, which is stopped when the test is over. */
export async function startServer(options: Partial<ServerOptions> = {}): Promise<Server> {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		stopLimitMs: 5_000,
		...http2OfTests(),
		...options,
	});
	await server.start();
	const clock = options.runtime?.clock;
	onTestFinished(() => (clock instanceof FakeClock ? stopOn(server, clock) : server.stop()));
	return server;
}

/** Stops a server with a manual clock, which is advanced until the server has stopped. */
async function stopOn(server: Server, clock: FakeClock): Promise<void> {
	let stopped = false;
	const stopping = server.stop().finally(() => {
		stopped = true;
	});
	while (!stopped) {
		await clock.advance(50);
		await new Promise((resolve) => setImmediate(resolve));
	}
	await stopping;
}
