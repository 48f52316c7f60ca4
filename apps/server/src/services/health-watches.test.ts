import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { createRpcRouter } from "@plinth/rpc-server";
import { silentLogger } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { Readiness } from "../operations/readiness.ts";
import { enveloped, metric, metricReaches, openSession, post } from "../raw-calls.fixture.ts";
import { startListener } from "../started-listener.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { createHealthService, healthStatus } from "./health-service.ts";
import { HealthWatches } from "./health-watches.ts";

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
			rawMessage: "the server is stopping: watch again",
		});
	});
});

describe("watches of the health", () => {
	it("have NOT_SERVING when the server is no longer ready, and SERVING when it is again", async () => {
		const clock = new FakeClock();
		const readiness = new Readiness(silentLogger);
		const options = { services: () => ["a.Service"], isReady: () => readiness.isReady };
		const watches = new HealthWatches({
			statusOf: healthStatus(options),
			messageBytes: 4_096,
			limits: defaultListenerLimits,
			clock,
			logger: silentLogger,
			streamsEnd: new AbortController().signal,
		});
		const router = createRpcRouter({ clock }).service(Health, createHealthService(options));
		const { address } = await startListener(router, {
			special: new Map([[watches.path, watches.serve]]),
			clock,
		});
		const client = createClient(Health, createGrpcTransport({ baseUrl: address }));
		const received = ["", "a.Service", "nope"].map((service) =>
			client.watch({ service })[Symbol.asyncIterator](),
		);
		const next = async (from = received) =>
			(await Promise.all(from.map((statuses) => statuses.next()))).map(
				({ value }) => value?.status,
			);
		expect(await next()).toEqual([Status.SERVING, Status.SERVING, Status.SERVICE_UNKNOWN]);
		const changing = received.slice(0, 2);
		readiness.block("storage", "the disk failed");
		clock.advance(500);
		expect(await next(changing)).toEqual([Status.NOT_SERVING, Status.NOT_SERVING]);
		readiness.clear("storage");
		clock.advance(500);
		expect(await next(changing)).toEqual([Status.SERVING, Status.SERVING]);
		// Nothing is sent while nothing changes.
		clock.advance(500);
		await client.check({});
		readiness.block("storage", "the disk failed");
		clock.advance(500);
		expect(await next(changing)).toEqual([Status.NOT_SERVING, Status.NOT_SERVING]);
	});

	it("beyond their limits are refused, per connection and in total, and checks are served", async () => {
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
