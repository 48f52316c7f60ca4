import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import {
	enveloped,
	metric,
	metricReaches,
	openSession,
	post,
} from "../testing/raw-calls.fixture.ts";
import { startServer } from "../testing/started-server.fixture.ts";

const watch = "/grpc.health.v1.Health/Watch";
const open = "plinth_health_watches";

describe.each([
	["gRPC", (baseUrl: string) => createGrpcTransport({ baseUrl })],
	["gRPC-Web", (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect", (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2" })],
	[
		"Connect with JSON",
		(baseUrl: string) =>
			createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
	],
] as const)("a watch of the health, by %s", (_name, transportOf) => {
	it("has the status, then each change, and the reason of its end", async () => {
		const server = await startServer({ stopLimitMs: 5_000 });
		const client = createClient(Health, transportOf(server.address));
		const statuses = client.watch({ service: "" })[Symbol.asyncIterator]();
		expect((await statuses.next()).value?.status).toBe(Status.SERVING);
		const canceled = new AbortController();
		const unknown = client
			.watch({ service: "nope" }, { signal: canceled.signal })
			[Symbol.asyncIterator]();
		expect((await unknown.next()).value?.status).toBe(Status.SERVICE_UNKNOWN);
		await metricReaches(server.address, open, 2);
		canceled.abort();
		await metricReaches(server.address, open, 1);
		const next = statuses.next().catch(ConnectError.from);
		await server.stop();
		expect(await next).toMatchObject({
			code: Code.Unavailable,
			rawMessage: "the server stops: watch again",
		});
	});
});

describe("watches of the health", () => {
	it("past their limits are refused, on a connection and in all, and checks are answered", async () => {
		const { address } = await startServer({
			stopLimitMs: 5_000,
			limits: { healthWatches: 5, healthWatchesPerConnection: 3 },
			callLimits: { callsInFlight: 1 },
		});
		const start = (session: ReturnType<typeof openSession>) =>
			post(session, watch, enveloped(""), { contentType: "application/grpc" });
		const [first, second] = [openSession(address), openSession(address)];
		const held = Array.from({ length: 3 }, () => start(first));
		await metricReaches(address, open, 3);
		expect(await start(first).ended).toMatchObject({ status: "grpc 8" });
		held.push(start(second), start(second));
		await metricReaches(address, open, 5);
		expect(await start(second).ended).toMatchObject({ status: "grpc 8" });
		const client = createClient(Health, createGrpcTransport({ baseUrl: address }));
		expect((await client.check({})).status).toBe(Status.SERVING);
		// A stream that ends makes room.
		held[0]?.stream.close();
		await metricReaches(address, open, 4);
		start(second);
		await metricReaches(address, open, 5);
		expect(await metric(address, "plinth_calls_cut_total")).toBe(0);
	});

	it("that are malformed or too large are refused", async () => {
		const { address } = await startServer({ stopLimitMs: 5_000 });
		const session = openSession(address);
		const grpc = { contentType: "application/grpc" };
		expect(await post(session, watch, enveloped("\xff"), grpc).ended).toMatchObject({
			status: "grpc 3",
		});
		expect(await post(session, watch, enveloped("x".repeat(5_000)), grpc).ended).toMatchObject({
			status: "grpc 8",
		});
		expect(await post(session, watch, "{}").ended).toMatchObject({ status: "415" });
		expect(await metric(address, open)).toBe(0);
	});
});
