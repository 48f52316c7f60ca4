import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { JukeboxService } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { metricReaches, openSession, post } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const id = idOf(Namespace, "default");
const type = typeOf(Artist.type);
const readPath = "/plinth.resource.v1.ResourceService/Read";

async function failureOf(call: Promise<unknown>): Promise<string> {
	return call.then(
		() => "ok",
		(failure) => String(ConnectError.from(failure)),
	);
}

const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
	["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
	["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
	["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
];

describe("a server without tokens", () => {
	it("limits the streams of all callers, whatever calls begin and end meanwhile", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule()],
			callLimits: { streamsPerSubject: 2 },
		});
		const transport = createConnectTransport({ baseUrl: address, httpVersion: "2" });
		const client = createClient(ResourceService, transport);
		const callsReach = (count: number) => metricReaches(address, "plinth_calls_in_flight", count);
		/** A call that lasts until its session is destroyed. */
		const call = () => {
			const session = openSession(address, { initialWindowSize: 0 });
			post(session, readPath, "{}");
			return session;
		};
		const [first, second] = [call(), call()];
		await callsReach(2);
		first.destroy();
		await callsReach(1);
		const end = new AbortController();
		onTestFinished(() => end.abort());
		const watch = () =>
			client.watchList({ type }, { signal: end.signal })[Symbol.asyncIterator]().next();
		await watch();
		await watch();
		second.destroy();
		await callsReach(0);
		expect(await failureOf(watch())).toMatch(/too many streams from anyone: at most 2 at once/);
	});
});

describe.each(transports)("past a limit, by %s", (_name, transportOf) => {
	it("of calls in flight, a call is refused, except health checks, and accepted again when there is room", async () => {
		const released = Promise.withResolvers<void>();
		const playing = Promise.withResolvers<void>();
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule(released.promise)],
			callLimits: { callsInFlight: 2 },
			logger: {
				debug: () => {},
				info: (_fields, message) => message === "playing" && playing.resolve(),
				warn: () => {},
				error: () => {},
			},
		});
		const transport = transportOf(address);
		const jukebox = createClient(JukeboxService, transport);
		const client = createClient(ResourceService, transport);
		const first = jukebox.play({ song: "one" });
		await playing.promise;
		const second = jukebox.play({ song: "two" });
		// A stream is opened in between, so that the second call has arrived before the third.
		let refusal = "ok";
		while (refusal === "ok") {
			refusal = await failureOf(client.read({ id }));
		}
		expect(refusal).toBe(
			"ConnectError: [resource_exhausted] the server has reached its limit of 2 calls in flight: try again",
		);
		expect((await createClient(Health, transport).check({})).status).toBe(1);
		released.resolve();
		await Promise.all([first, second]);
		expect(await failureOf(client.read({ id }))).toBe("ok");
	});

	it("of streams of a subject a watch is refused, and taken again when one has ended", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule()],
			callLimits: { streamsPerSubject: 2 },
		});
		const client = createClient(ResourceService, transportOf(address));
		const open = async () => {
			const controller = new AbortController();
			const events = client
				.watchList({ type }, { signal: controller.signal })
				[Symbol.asyncIterator]();
			await events.next();
			return controller;
		};
		const [first] = [await open(), await open()];
		expect(await failureOf(open())).toBe(
			"ConnectError: [resource_exhausted] too many streams from anyone: at most 2 at once; end some of them",
		);
		expect(await failureOf(client.read({ id }))).toBe("ok");
		first.abort();
		let again = "";
		while (again !== "ok") {
			again = await failureOf(open());
		}
	});

	it("of the rate of a subject calls are refused before they are read, until time has passed", async () => {
		const clock = new FakeClock({ nowMs: Date.now() });
		const token = (name: string) =>
			`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [all] }\n`;
		const { access } = filesOf({
			access: `policies: { all: [{ operations: ["*"] }] }\ntokens:\n${token("alice")}${token("bob")}`,
		});
		const { address } = await startServer({
			stopLimitMs: 200,
			runtime: { ...systemRuntime, clock },
			access: { file: access },
			callLimits: { callsPerSecond: 1, callBurst: 3 },
		});
		const client = createClient(ResourceService, transportOf(address));
		const as = (name: string) => ({ headers: { authorization: `Bearer ${name}` } });
		const results: string[] = [];
		for (let call = 0; call < 4; call += 1) {
			results.push(await failureOf(client.read({ id }, as("alice"))));
		}
		expect(results).toEqual([
			...["ok", "ok", "ok"],
			"ConnectError: [resource_exhausted] too many calls from alice: at most 1 a second on average; slow down, and try again",
		]);
		expect(await failureOf(client.read({ id }, as("bob")))).toBe("ok");
		const refusals: string[] = [];
		for (let call = 0; call < 4; call += 1) {
			refusals.push(await failureOf(client.read({ id }, as("stranger"))));
		}
		expect(refusals.map((text) => /\[(\w+)\]/.exec(text)?.[1])).toEqual([
			...["unauthenticated", "unauthenticated", "unauthenticated"],
			"resource_exhausted",
		]);
		await clock.advance(1_000);
		expect(await failureOf(client.read({ id }, as("alice")))).toBe("ok");
	});

	it("of the size of a message the call is refused, and others go on", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule()],
			limits: { messageBytes: 100_000 },
		});
		const client = createClient(ResourceService, transportOf(address));
		const resource = artist("miles");
		resource.metadata = { notes: "x".repeat(200_000) };
		expect(await failureOf(client.write({ resource }))).toMatch(/resource_exhausted/);
		expect(await failureOf(client.write({ resource: artist("miles") }))).toBe("ok");
	});
});

describe("past a limit", () => {
	it("of streams of one connection, what is too much waits or is refused, and nothing else", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule()],
			limits: { streamsPerConnection: 2 },
		});
		const session: ClientHttp2Session = connectHttp2(address);
		await once(session, "remoteSettings");
		expect(session.remoteSettings.maxConcurrentStreams).toBe(2);
		session.destroy();
	});

	it("of connections, one more is closed immediately, and accepted when another has closed", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			limits: { connections: 1 },
		});
		const port = Number(new URL(address).port);
		const first = connect(port, "127.0.0.1");
		first.on("error", () => {});
		await once(first, "connect");
		const second = connect(port, "127.0.0.1");
		second.on("error", () => {});
		second.resume();
		await once(second, "close");
		first.destroy();
		let status = 0;
		while (status !== 200) {
			status = await fetch(`${address}/healthz`, { headers: { connection: "close" } }).then(
				(response) => response.status,
				() => 0,
			);
		}
	});

	it("of the server's streams one more is refused with what to do", async () => {
		const { address } = await startServer({
			stopLimitMs: 200,
			modules: [musicModule()],
			callLimits: { streamsInFlight: 1 },
		});
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		const events = client.watchList({ type })[Symbol.asyncIterator]();
		await events.next();
		const failure = await client
			.watchList({ type })
			[Symbol.asyncIterator]()
			.next()
			.catch(ConnectError.from);
		expect(failure).toMatchObject({ code: Code.ResourceExhausted });
		await events.return?.();
	});
});
