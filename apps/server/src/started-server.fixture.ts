import { silentLogger } from "@plinth/runtime";
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
		logger: silentLogger,
		...options,
	});
	await server.start();
	const clock = options.runtime?.clock;
	onTestFinished(() =>
		clock instanceof FakeClock ? whileTimePasses(clock, server.stop()) : server.stop(),
	);
	return server;
}

/**
 * Advances a clock until a promise settles. Calls in process need that just after the start: what conflicts with a
 * controller tries again after a few milliseconds.
 */
export async function whileTimePasses<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
	let isPending = true;
	const result = promise.finally(() => {
		isPending = false;
	});
	result.catch(() => {});
	while (isPending) {
		clock.advance(50);
		await new Promise((resolve) => setImmediate(resolve));
	}
	return result;
}
