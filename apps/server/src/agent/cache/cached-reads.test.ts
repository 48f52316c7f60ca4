/** What an agent with a cache serves itself, and what it forwards. */
import { setImmediate } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { type ListResponse, ReadRequestSchema, ResourceService } from "@plinth/proto";
import { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { allowed, defineType, idOf, Namespace, typeOf } from "@plinth/resource";
import { policyAccess } from "@plinth/resource-service";
import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it, vi } from "vitest";
import { ArtistSchema } from "../../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../../../testdata/music.ts";
import { outcome, tokensOf, transportWith } from "../../callers.fixture.ts";
import { defineModule } from "../../module/index.ts";
import { enveloped, openSession, post } from "../../raw-calls.fixture.ts";
import { parseAgentCommandLine } from "../agent-configuration.ts";
import { readiness } from "../started-agent.fixture.ts";
import {
	cacheIs,
	clientOf,
	policies,
	startCachedAgent,
	startCachedServer,
	users,
	whenCached,
} from "./cached-agent.fixture.ts";

const artists = { type: typeOf(Artist.type), tenancy: {} };
const anna = { id: idOf(Artist, "anna") };
const bert = { id: idOf(Artist, "bert") };

async function start() {
	const started = await startCachedServer();
	for (const name of ["anna", "bert"]) {
		await started.server.client.write({ resource: artist(name) });
	}
	const agent = await startCachedAgent([started.port]);
	await cacheIs(agent, "used");
	return { ...started, agent };
}

const names = ({ resources }: Pick<ListResponse, "resources">) =>
	resources.map(({ id }) => id?.name);

describe("an agent with a cache", () => {
	it("serves reads and lists, and tells the version and the age of what it has read", async () => {
		const { agent, server } = await start();
		const { resources, headers, wasCached } = clientOf(agent, "reader");
		const { resource } = await resources.read(anna);
		expect(wasCached()).toBe(true);
		expect(resource).toEqual((await server.client.read(anna)).resource);
		expect(Number(headers().get("x-plinth-cache-version"))).toBeGreaterThanOrEqual(
			Number(resource?.version),
		);
		expect(headers().get("x-plinth-cache-age-ms")).toMatch(/^\d+$/);
		expect(names(await resources.list(artists))).toEqual(["anna", "bert"]);
		expect(wasCached()).toBe(true);
		const metrics = await (await fetch(`${agent.address}/metrics`)).text();
		expect(metrics).toMatch(/plinth_agent_cache_calls_total\{.*outcome="served".*\} 2/);
		expect(metrics).toMatch(/plinth_agent_cache_used\{.*type="music\.v1\.Artist".*\} 1/);
	});

	it.each(["grpc", "connect"])("serves callers of %s", async (protocol) => {
		const { agent } = await start();
		const baseUrl = agent.address;
		const transport =
			protocol === "grpc"
				? createGrpcTransport({ baseUrl })
				: createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true });
		let cached: string | null = null;
		await createClient(ResourceService, transport).read(anna, {
			headers: { authorization: "Bearer reader-token" },
			onHeader: (header) => {
				cached = header.get("x-plinth-cache-version");
			},
		});
		expect(cached).not.toBeNull();
	});

	it("shows callers what they may read, and no more", async () => {
		const { agent } = await start();
		const { resources, wasCached } = clientOf(agent, "some");
		expect(names(await resources.list(artists))).toEqual(["anna"]);
		expect(wasCached()).toBe(true);
		expect(await outcome(resources.read(anna))).toBe("ok");
		expect(wasCached()).toBe(true);
		const refusals = [bert, { id: idOf(Artist, "nobody") }].map((request) =>
			outcome(resources.read(request)),
		);
		expect(await Promise.all(refusals)).toEqual(
			Array(2).fill("PermissionDenied: some lacks operator:read on music.v1.Artist"),
		);
		expect(await outcome(clientOf(agent, "stranger").resources.read(anna))).toBe(
			"Unauthenticated: the token is not known",
		);
	});

	it("serves pages from one snapshot", async () => {
		const { agent, server } = await start();
		const { resources, wasCached } = clientOf(agent, "reader");
		const first = await resources.list({ ...artists, pageSize: 1 });
		expect(wasCached()).toBe(true);
		await server.client.write({ resource: artist("zoe") });
		const second = await resources.list({
			...artists,
			pageSize: 1,
			pageToken: first.nextPageToken,
		});
		expect(wasCached()).toBe(true);
		expect([...names(first), ...names(second)]).toEqual(["anna", "bert"]);
		expect(second).toMatchObject({ version: first.version, nextPageToken: "" });
	});

	it("forwards consistent reads, JSON, other types, and what is not found", async () => {
		const { agent, server } = await start();
		const consistent = clientOf(agent, "reader", { "x-plinth-consistency-mode": "consistent" });
		await consistent.resources.read(anna);
		expect(consistent.wasCached()).toBe(false);
		const json = await fetch(`${agent.address}/plinth.resource.v1.ResourceService/List`, {
			method: "POST",
			headers: { "content-type": "application/json", authorization: "Bearer reader-token" },
			body: JSON.stringify({ type: Artist.type, tenancy: {} }),
		});
		expect(json.headers.has("x-plinth-cache-version")).toBe(false);
		expect(await json.json()).toMatchObject({ resources: [{}, {}] });
		const writer = clientOf(agent, "writer");
		await writer.resources.list({ type: typeOf(Namespace.type), tenancy: {} });
		expect(writer.wasCached()).toBe(false);
		const missing = { id: idOf(Artist, "nobody") };
		const elsewhere = { id: idOf(Artist, "anna", { namespace: "nowhere" }) };
		for (const request of [missing, elsewhere]) {
			expect(await outcome(writer.resources.read(request))).toBe(
				await outcome(clientOf(server, "writer").resources.read(request)),
			);
		}
	});

	it("forwards calls of browsers, so that servers judge Host and Origin", async () => {
		const { server, port } = await startCachedServer({ access: undefined as never });
		await server.client.write({ resource: artist("anna") });
		const agent = await startCachedAgent([port]);
		await cacheIs(agent, "used");
		const page = { origin: "http://evil.example" };
		const { resources, wasCached } = clientOf(agent, "nobody", page);
		expect(await outcome(resources.read(anna))).toBe(
			await outcome(clientOf(server, "nobody", page).resources.read(anna)),
		);
		expect(await outcome(resources.read(anna))).not.toBe("ok");
		expect(wasCached()).toBe(false);
	});

	it("serves and forwards requests that arrive byte by byte", async () => {
		const { agent } = await start();
		for (const [id, status, isCached] of [
			[anna.id, "grpc 0", true],
			[idOf(Artist, "nobody"), "grpc 5", false],
		] as const) {
			const body = enveloped(
				Buffer.from(toBinary(ReadRequestSchema, create(ReadRequestSchema, { id }))).toString(
					"latin1",
				),
			);
			const { stream, ended } = post(
				openSession(agent.address),
				"/plinth.resource.v1.ResourceService/Read",
				body.subarray(0, 1),
				{
					...{ contentType: "application/grpc", isOpen: true },
					headers: { authorization: "Bearer writer-token" },
				},
			);
			let headers: Readonly<Record<string, unknown>> = {};
			stream.once("response", (fields) => {
				headers = fields;
			});
			for (const byte of body.subarray(1)) {
				await setImmediate();
				stream.write(Buffer.from([byte]));
			}
			stream.end();
			expect((await ended).status).toBe(status);
			expect("x-plinth-cache-version" in headers).toBe(isCached);
		}
	});

	it("forwards requests that are large, as they came", async () => {
		const { agent, server } = await start();
		const request = { id: { ...anna.id, uid: "x".repeat(200_000) } };
		const direct = await outcome(clientOf(server, "writer").resources.read(request));
		expect(direct).toMatch(/^NotFound: /);
		const { resources, wasCached } = clientOf(agent, "writer");
		expect(await outcome(resources.read(request))).toBe(direct);
		expect(wasCached()).toBe(false);
	});

	it("serves the callers of many tokens", async () => {
		const names = Array.from({ length: 300 }, (_, index) => `user-${index}`);
		const { server, port, setAccess } = await startCachedServer();
		const callers = Object.fromEntries(names.map((name) => [name, "reader"]));
		await setAccess(`${policies}${tokensOf({ ...users, ...callers })}`);
		await server.client.write({ resource: artist("anna") });
		const agent = await startCachedAgent([port]);
		await cacheIs(agent, "used");
		await vi.waitFor(
			async () => {
				let cached = 0;
				for (const name of names) {
					const { resources, wasCached } = clientOf(agent, name);
					await resources.read(anna);
					cached += Number(wasCached());
				}
				expect(cached).toBe(names.length);
			},
			{ timeout: 300_000 },
		);
	});

	it("serves no older than what it has passed on, or what a client names", async () => {
		const { agent, server } = await start();
		const { resources, wasCached } = clientOf(agent, "writer");
		for (let count = 1; count <= 20; count += 1) {
			const { resource } = await resources.write({ resource: artist("anna", `genre ${count}`) });
			// Other resources and types change as well.
			await server.client.write({ resource: artist("bert", `genre ${count}`) });
			const read = await clientOf(agent, "reader").resources.read(anna);
			expect(read.resource).toEqual(resource);
		}
		const { resource } = await server.client.write({ resource: artist("anna", "new") });
		const named = clientOf(agent, "reader", { "x-plinth-not-before": resource?.version ?? "" });
		expect((await named.resources.read(anna)).resource).toEqual(resource);
		expect(Number(named.headers().get("x-plinth-position"))).toBeGreaterThanOrEqual(
			Number(resource?.version),
		);
		// What was written elsewhere has no event for the cache: the agent asks for its own version.
		const { resource: other } = await server.client.write({
			resource: { id: idOf(Namespace, "other") },
		});
		const position = { "x-plinth-not-before": other?.version ?? "" };
		const late = clientOf(agent, "reader", position);
		await late.resources.read(anna);
		expect(late.wasCached()).toBe(true);
		await resources.read(anna);
		expect(wasCached()).toBe(true);
	});
});

describe("the service for caches", () => {
	it("is served on the port for agents alone, and not forwarded for clients", async () => {
		const { agent, server } = await start();
		for (const { address } of [agent, server]) {
			const client = createClient(AgentCacheService, transportWith(address, "agent-token"));
			expect(await outcome(client.describeType({ type: Artist.type }))).toMatch(/^Unimplemented: /);
			const rights = client.followAccess({})[Symbol.asyncIterator]();
			expect(await outcome(rights.next())).toMatch(/^Unimplemented: /);
		}
	});
});

/** A logger that remembers warnings. */
function warnings() {
	const problems: string[] = [];
	const logger: Logger = {
		...silentLogger,
		warn: (fields, message) => {
			problems.push(`${message}: ${String((fields as { problem?: unknown }).problem)}`);
		},
	};
	return { logger, problems };
}

describe("a type is not cached, and its calls are forwarded,", () => {
	async function expectForwarded(port: string, user: "agent" | "some" = "agent") {
		const { logger, problems } = warnings();
		const agent = await startCachedAgent([port], { user, logger });
		await expect
			.poll(() => problems.join("\n"), { timeout: 300_000 })
			.toContain("the type is not cached, and its calls are forwarded");
		await readiness(agent.address, /cache of music\.v1\.Artist: not used/);
		const { resources, wasCached } = clientOf(agent, "reader");
		await resources.list(artists);
		expect(wasCached()).toBe(false);
		return problems.join("\n");
	}

	it("if hooks of the type decide who may read it", async () => {
		const guarded = defineType(ArtistSchema, { authorize: { list: () => allowed } });
		const music = defineModule({ name: "music", types: [guarded] });
		const { port } = await startCachedServer({ modules: [music] });
		expect(await expectForwarded(port)).toContain(
			"hooks of resource type music.v1.Artist decide who may read it",
		);
	});

	it("if the agent may not read all of it", async () => {
		const { port } = await startCachedServer();
		expect(await expectForwarded(port, "some")).toContain("some lacks operator:read on all");
	});

	it("if the agent may not read all of it at the server of its watch", async () => {
		const shown = (name: string) => ({ operations: ["operator:read"], namePrefix: name });
		let calls = 0;
		const { server, port } = await startCachedServer({
			access: undefined as never,
			authorizer: {
				authenticate: (token = "") => {
					// As if the second call, which is the watch, had reached a server with other rights.
					const namePrefix = token.startsWith("agent") && ++calls === 2 ? "a" : "";
					const policy = { subject: token, rules: [shown(namePrefix)] };
					return policyAccess(policy, new AbortController().signal);
				},
			},
		});
		for (const name of ["anna", "bert"]) {
			await server.client.write({ resource: artist(name) });
		}
		expect(await expectForwarded(port)).toContain("lacks operator:read on all");
	});

	it("if servers are older, or are called by their public ports", async () => {
		const { server } = await startCachedServer();
		expect(await expectForwarded(server.address)).toContain(
			"the servers are older than this agent, or --servers names ports that are not for agents",
		);
	});

	it("if the server decides about rights by code of its own", async () => {
		const { port } = await startCachedServer({
			access: undefined as never,
			authorizer: { authenticate: () => ({ subject: "anyone", check: () => allowed }) },
		});
		expect(await expectForwarded(port)).toContain("by an authorizer of its own");
	});
});

describe("a type of --cache", () => {
	it("that servers do not know is an error at the start", async () => {
		const { port } = await startCachedServer();
		const types = [{ group: "music", groupVersion: "v9", kind: "Nope" }];
		await expect(startCachedAgent([port], { types })).rejects.toThrow(
			"--cache: resource type music.v9.Nope is not registered at the servers",
		);
	});

	it("must be the name of a type, and needs a credential for the servers", () => {
		const flags = ["--servers", "a:7577", "--servers-credential-file", "secret"];
		expect(() => parseAgentCommandLine([...flags, "--cache", "music.Artist"])).toThrow(
			'--cache "music.Artist" is not the name of a type, such as music.v1.Artist',
		);
		expect(parseAgentCommandLine([...flags, "--cache", "music.v1.Artist"]).cache).toEqual([
			{ group: "music", groupVersion: "v1", kind: "Artist" },
		]);
		expect(() =>
			parseAgentCommandLine(["--servers", "a:7577", "--cache", "music.v1.Artist"]),
		).toThrow("--cache needs --servers-credential-file");
	});
});

it("an agent without tokens caches for all, if the server requires none", async () => {
	const { server, port } = await startCachedServer({ access: undefined as never });
	await server.client.write({ resource: artist("anna") });
	const agent = await startCachedAgent([port]);
	await cacheIs(agent, "used");
	const plain = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
	let cached: string | null = null;
	await plain.read(anna, {
		onHeader: (header) => {
			cached = header.get("x-plinth-cache-version");
		},
	});
	expect(cached).not.toBeNull();
});

it("a cache is used again for a storage that has replaced another one", async () => {
	const first = await startCachedServer();
	for (let count = 0; count < 50; count += 1) {
		await first.server.client.write({ resource: artist("anna", `genre ${count}`) });
	}
	const agent = await startCachedAgent([first.port]);
	await cacheIs(agent, "used");
	const { resources } = clientOf(agent, "writer");
	const before = await resources.read(anna);
	await first.server.stop();
	const second = await startCachedServer({}, Number(new URL(first.port).port));
	const { resource } = await second.server.client.write({ resource: artist("anna", "new") });
	expect(resource?.version).not.toBe(before.resource?.version);
	await whenCached(agent, async (client) => {
		expect((await client.resources.read(anna)).resource).toEqual(resource);
	});
});

it("fails with the error of a server when none is ready", async () => {
	const { agent, server } = await start();
	await server.stop();
	await expect
		.poll(() => outcome(clientOf(agent, "writer").resources.read({ id: idOf(Artist, "x") })), {
			timeout: 300_000,
		})
		.toMatch(/^Unavailable: /);
});
