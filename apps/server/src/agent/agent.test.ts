/** An agent in front of two real servers, called as clients call servers. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { createRegistry } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ArtistSchema, JukeboxService } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { outcome, tokensOf, transportWith } from "../callers.fixture.ts";
import { createAuthority, filesOf } from "../certificates.fixture.ts";
import { curl, curlJson } from "../curl.fixture.ts";
import { metric, openSession, post } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { readiness, startReadyAgent, startTestAgent } from "./started-agent.fixture.ts";

const list = { type: Namespace.type, tenancy: { partition: "default" } };
const listPath = "/plinth.resource.v1.ResourceService/List";

function plinthTransport(baseUrl: string): Transport {
	const transport = createPlinthTransport({ baseUrl });
	onTestFinished(() => transport.close());
	return transport;
}

const transports: readonly [string, (baseUrl: string) => Transport][] = [
	["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
	["gRPC of @plinth/rpc-client", plinthTransport],
	["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
	["gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
	["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
	[
		"Connect with JSON",
		(baseUrl) =>
			createConnectTransport({
				baseUrl,
				httpVersion: "2",
				useBinaryFormat: false,
				jsonOptions: { registry: createRegistry(ArtistSchema) },
			}),
	],
	[
		"Connect with GET",
		(baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }),
	],
];

describe.each(transports)("an agent, called by %s", (_name, transportTo) => {
	it("passes unary calls on", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const agent = await startReadyAgent([server.address]);
		const client = createClient(ResourceService, transportTo(agent.address));
		const { resource } = await client.write({ resource: artist("miles") });
		const read = await client.read({ id: idOf(Artist, "miles") });
		expect(read.resource).toEqual(resource);
		const jukebox = createClient(JukeboxService, transportTo(agent.address));
		expect((await jukebox.play({ song: "So What" })).song).toBe("So What");
	});

	it("passes errors on, with their messages and details", async () => {
		const server = await startServer();
		const agent = await startReadyAgent([server.address]);
		const errorAt = async (address: string) => {
			const client = createClient(ResourceService, transportTo(address));
			const failure = await client.read({ id: { name: "x" } }).catch((thrown: unknown) => thrown);
			const { code, message, details } = ConnectError.from(failure);
			return { code, message, details: details.length };
		};
		const direct = await errorAt(server.address);
		expect(direct.code).toBe(Code.InvalidArgument);
		expect(await errorAt(agent.address)).toEqual(direct);
	});

	it("passes the events of a watch on when they happen, and its end to the server", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const agent = await startReadyAgent([server.address]);
		const watcher = createClient(ResourceService, transportTo(agent.address));
		const writer = createClient(ResourceService, transportTo(server.address));
		const end = new AbortController();
		const events = watcher
			.watchList(
				{ type: Artist.type, tenancy: { partition: "default", namespace: "default" } },
				{ signal: end.signal },
			)
			[Symbol.asyncIterator]();
		const next = async () => (await events.next()).value?.event;
		expect(await next()).toMatchObject({ case: "endOfSnapshot" });
		for (const name of ["miles", "john", "bill"]) {
			await writer.write({ resource: artist(name) });
			expect(await next()).toMatchObject({ case: "upsert", value: { resource: { id: { name } } } });
		}
		end.abort();
		await expect(events.next()).rejects.toThrow();
		await expect
			.poll(() => metric(agent.address, "plinth_agent_calls_open"), { interval: 10 })
			.toBe(0);
		await expect
			.poll(() => metric(server.address, "plinth_streams_open"), { interval: 10 })
			.toBe(0);
	});
});

describe("an agent in front of two servers", () => {
	let agent: string;

	beforeEach(async () => {
		const servers = [await startServer(), await startServer()];
		agent = (await startReadyAgent(servers.map(({ address }) => address))).address;
	});

	it("spreads open calls over both", async () => {
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent }));
		const watches = await Promise.all(
			Array.from({ length: 10 }, async () => {
				const events = client.watchList(list)[Symbol.asyncIterator]();
				await events.next();
				return events;
			}),
		);
		const text = await curl(`${agent}/metrics`);
		const open = [...text.matchAll(/^plinth_agent_calls_open\{.*\} (\d+)$/gm)].map(([, n]) => n);
		expect(open).toEqual(["5", "5"]);
		await Promise.all(watches.map((events) => events.return?.()));
	});

	it("responds to curl as a server does", async () => {
		const request = { type: Namespace.type, tenancy: { partition: "default" } };
		expect(await curlJson(agent, "List", request)).toMatchObject({
			resources: [{ id: { name: "default" } }],
		});
		expect(await curl(`${agent}/nowhere`)).toMatch(/^not found: \/nowhere\. Methods are at/);
		expect(await curl(`${agent}/healthz`)).toBe("ok\n");
		expect(await curl(`${agent}/readyz`)).toMatch(/^ready\n/);
	});

	it("counts calls", async () => {
		await curlJson(agent, "List", list);
		const completed = () => metric(agent, "plinth_agent_calls_total", 'outcome="completed"');
		await expect.poll(completed, { interval: 10 }).toBe(1);
		expect(await metric(agent, "plinth_agent_servers_healthy")).toBe(2);
		expect(await metric(agent, "plinth_agent_retries_total")).toBe(0);
	});
});

describe("a Host header that is malformed", () => {
	it.each(["application/json", "application/connect+json", "application/grpc", "text/plain"])(
		"gets the response of a server: %s",
		async (contentType) => {
			const server = await startServer();
			const agent = await startReadyAgent([server.address]);
			for (const host of ["user@localhost", "localhost:70000", "a..b"]) {
				const overHttp1 = await postOverHttp1(server.address, host, contentType);
				expect(overHttp1.body + JSON.stringify(overHttp1.headers)).toMatch(
					/one Host header|one%20/,
				);
				expect(await postOverHttp1(agent.address, host, contentType)).toEqual(overHttp1);
				const overHttp2 = ({ address }: { readonly address: string }) =>
					post(openSession(address), listPath, "{}", {
						contentType,
						headers: { ":authority": host },
					}).ended;
				expect(await overHttp2(agent)).toEqual(await overHttp2(server));
			}
			const { body } = await postOverHttp1(agent.address, "localhost", "application/json");
			expect(body).toContain("invalid_argument");
			expect(body).not.toContain("Host");
		},
	);
});

/** Posts an empty request with a Host header, and resolves to the response without its date. */
async function postOverHttp1(address: string, host: string, contentType: string) {
	const request = httpRequest(new URL(listPath, address), {
		method: "POST",
		headers: { host, "content-type": contentType },
		agent: false,
	});
	request.end("{}");
	const [response]: IncomingMessage[] = await once(request, "response");
	const { date: _, ...headers } = response?.headers ?? {};
	return { status: response?.statusCode, headers, body: response && (await text(response)) };
}

describe("the token of a caller", () => {
	it("is judged by the server", async () => {
		const { access } = filesOf({
			access: `${tokensOf({ reader: "reader" })}policies:\n  reader: [{ operations: [operator:read], type: tenancy.v1.Namespace }]\n`,
		});
		const server = await startServer({ access: { file: access } });
		const agent = await startReadyAgent([server.address]);
		const client = (token: string) =>
			createClient(ResourceService, transportWith(agent.address, token));
		expect((await client("reader-token").list(list)).resources).toHaveLength(1);
		expect(await outcome(client("wrong").list(list))).toMatch(/^Unauthenticated: /);
		const anonymous = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: agent.address }),
		);
		expect(await outcome(anonymous.list(list))).toMatch(/^Unauthenticated: /);
		const { id } = artist("miles");
		expect(await outcome(client("reader-token").delete({ ...(id && { id }) }))).toMatch(
			/^(?:PermissionDenied|NotFound|InvalidArgument): /,
		);
	});
});

describe("TLS", () => {
	it("is spoken to clients and to servers", async () => {
		const authority = await createAuthority();
		const { cert, key } = await authority.issue();
		const files = filesOf({ cert, key, ca: authority.cert });
		const tls = { certFile: files.cert, keyFile: files.key };
		const server = await startServer({ tls });
		const { address } = await startTestAgent([server.address], { tls, serversCaFile: files.ca });
		await expect
			.poll(() => curl("--cacert", files.ca, `${address}/readyz`), { interval: 10 })
			.toMatch(/^ready\n/);
		const text = await curl(
			...["--cacert", files.ca, `${address}${listPath}`],
			...["-H", "content-type: application/json", "-d", JSON.stringify(list)],
		);
		expect(JSON.parse(text)).toMatchObject({ resources: [{}] });
	});
});

describe("what is too large", () => {
	it("is refused: headers, by the agent, without harm to other calls of the session", async () => {
		const server = await startServer();
		const agent = await startReadyAgent([server.address]);
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		const watch = client.watchList(list)[Symbol.asyncIterator]();
		await watch.next();
		const large = { "x-large": "x".repeat(15_500) };
		expect(await outcome(client.list(list, { headers: large }))).toMatch(
			/^ResourceExhausted: the request has \d+ headers of \d+ bytes/,
		);
		const many = Object.fromEntries(Array.from({ length: 110 }, (_, n) => [`x-${n}`, "x"]));
		expect(await outcome(client.list(list, { headers: many }))).toMatch(/^ResourceExhausted: /);
		const huge = openSession(agent.address);
		const call = post(huge, listPath, "{}", { headers: { "x-large": "x".repeat(60_000) } });
		expect((await call.ended).status).not.toBe("200");
		// The watch continues on its session.
		expect((await watch.next()).value?.event.case).toBe("endOfSnapshot");
		expect((await client.list(list)).resources).toHaveLength(1);
		await watch.return?.();
	});

	it.each([
		["gRPC", createGrpcTransport],
		[
			"Connect",
			(options: { baseUrl: string }) =>
				createConnectTransport({ ...options, httpVersion: "1.1" as const }),
		],
	])("is refused: messages over %s, by the agent or the server", async (_name, transportTo) => {
		const server = await startServer({ modules: [musicModule()] });
		const agent = await startReadyAgent([server.address], {
			forwardingLimits: { requestBytes: 2 * 1024 ** 2 },
		});
		const larger = await startReadyAgent([server.address]);
		const write = (baseUrl: string, bytes: number) =>
			createClient(ResourceService, transportTo({ baseUrl })).write({
				resource: artist("large", "x".repeat(bytes)),
			});
		expect(await outcome(write(agent.address, 3 * 1024 ** 2))).toMatch(
			/^ResourceExhausted: .*the agent forwards at most 2097152/,
		);
		expect(await outcome(write(larger.address, 5 * 1024 ** 2))).toMatch(
			/^ResourceExhausted: .*readMaxBytes 4194304/,
		);
		for (const { address } of [agent, larger]) {
			expect(await outcome(write(address, 100_000))).toBe("ok");
			expect(await metric(address, "plinth_agent_calls_open")).toBe(0);
		}
	});

	it("is refused: the number of calls", async () => {
		const server = await startServer();
		const agent = await startReadyAgent([server.address], { forwardingLimits: { calls: 2 } });
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		const ends = [new AbortController(), new AbortController()];
		for (const { signal } of ends) {
			await client.watchList(list, { signal })[Symbol.asyncIterator]().next();
		}
		expect(await outcome(client.list(list))).toMatch(
			/^ResourceExhausted: the agent forwards at most 2 calls/,
		);
		ends[0]?.abort();
		await expect.poll(() => outcome(client.list(list)), { interval: 10 }).toBe("ok");
		ends[1]?.abort();
	});
});

describe("a server that stops", () => {
	it("finishes its calls while new ones go to the other server", async () => {
		const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
		const servers = [
			await startServer({ modules: [musicModule(first.promise)], stopLimitMs: 60_000 }),
			await startServer({ modules: [musicModule(second.promise)], stopLimitMs: 60_000 }),
		];
		const agent = await startReadyAgent(servers.map(({ address }) => address));
		const transport = createGrpcTransport({ baseUrl: agent.address });
		const jukebox = createClient(JukeboxService, transport);
		const client = createClient(ResourceService, transport);
		// One at each server.
		const calls = [jukebox.play({ song: "one" }), jukebox.play({ song: "two" })];
		await expect
			.poll(() => metric(agent.address, "plinth_agent_calls_open"), { interval: 10 })
			.toBe(2);
		const stopped = servers[0]?.stop();
		await readiness(agent.address, new RegExp(`${servers[0]?.address}: not ready`));
		for (let count = 0; count < 10; count += 1) {
			expect(await outcome(client.write({ resource: artist(`after-${count}`) }))).toBe("ok");
			expect(await outcome(client.list(list))).toBe("ok");
		}
		first.resolve();
		second.resolve();
		expect((await Promise.all(calls)).map(({ song }) => song)).toEqual(["one", "two"]);
		await stopped;
	});
});

describe("a stop", () => {
	it("ends streams with Unavailable and lets calls finish", async () => {
		const released = Promise.withResolvers<void>();
		const server = await startServer({ modules: [musicModule(released.promise)] });
		const agent = await startReadyAgent([server.address], { stopLimitMs: 60_000 });
		const transport = createGrpcTransport({ baseUrl: agent.address });
		const watch = createClient(ResourceService, transport).watchList(list)[Symbol.asyncIterator]();
		await watch.next();
		const call = createClient(JukeboxService, transport).play({ song: "So What" });
		await expect
			.poll(() => metric(agent.address, "plinth_agent_calls_open"), { interval: 10 })
			.toBe(2);
		const stopped = agent.stop();
		await expect(
			(async () => {
				for (;;) {
					await watch.next();
				}
			})(),
		).rejects.toThrow("the agent is stopping: open the stream again");
		released.resolve();
		expect((await call).song).toBe("So What");
		await stopped;
	});
});
