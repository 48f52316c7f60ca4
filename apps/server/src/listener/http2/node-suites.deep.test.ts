/**
 * The suites of the listener, with `node:http2`. They start their servers with `http2OfTests`, and processes
 * inherit the variable.
 */
import { afterAll, beforeAll } from "vitest";

beforeAll(() => {
	process.env.PLINTH_HTTP2 = "node";
});

afterAll(() => {
	delete process.env.PLINTH_HTTP2;
});

await import("../listener.test.ts");
await import("../exchanges.test.ts");
await import("../take-turns.test.ts");
await import("../../decoding/incomplete-messages.test.ts");
await import("../../deployment/deployment.test.ts");
await import("../../independent-clients.test.ts");
await import("../../limits/incomplete-requests.test.ts");
await import("../../limits/limits.test.ts");
await import("../../limits/shares.test.ts");
await import("../../limits/slow-clients.test.ts");
await import("../../security/browsers.test.ts");
await import("../../security/tls.test.ts");
await import("../../server.test.ts");
await import("../../services/faulty-handlers.test.ts");
await import("../../services/health-watches.test.ts");
await import("../../stop.test.ts");
