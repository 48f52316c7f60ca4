import { toJson } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { defineController } from "@plinth/controller";
import { Condition_State } from "@plinth/proto";
import { LeaseService } from "@plinth/proto/gen/plinth/lease/v1/lease_service_pb.js";
import {
	LeaseKind,
	OverviewSchema,
	ServerService,
	type WatchOverviewRequest,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { describe, expect, it, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { defineModule } from "../module/index.ts";
import type { Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";

const unusual = "an-unusual-name";

/** Fails at each artist, and says so in a condition. */
const critic = defineController({
	name: "critic",
	manages: Artist,
	reconcile: async (context, { id }) => {
		const decoded = await context.read(Artist, id);
		if (decoded !== undefined) {
			const conditions = [{ type: "Liked", state: Condition_State.FALSE }];
			await context.writeStatusIfChanged(decoded.resource, { conditions });
		}
		throw new Error(`does not like ${id.name}`);
	},
});

const music = defineModule({ name: "music", types: [Artist], controllers: [critic] });

function clientOf({ address }: Server) {
	return createClient(
		ServerService,
		createConnectTransport({ baseUrl: address, httpVersion: "2" }),
	);
}

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** Operators may read the overview; others may read everything else. */
function policies(): PolicyAuthorizer {
	const authorizer = new PolicyAuthorizer();
	const grant = (subject: string, type: string) =>
		authorizer.grant(subject, { subject, rules: [{ operations: ["operator:read"], type }] });
	grant("operator", "internal.v1.Server");
	grant("reporter", "internal.v1.Controller");
	grant("fan", "music.*");
	return authorizer;
}

describe("the overview of a server", () => {
	it("counts resources, conditions, controllers, commits and watches, and names no resource", async () => {
		const server = await startServer({ modules: [music] });
		const client = clientOf(server);
		await server.client.write({ resource: artist(unusual) });
		const overview = await vi.waitFor(async () => {
			const { overview: taken } = await client.getOverview({});
			expect(taken?.types.find(({ type }) => type === Artist.key)).toMatchObject({
				...{
					resources: 1n,
					withFalseCondition: 1n,
					withStaleCondition: 0n,
					beingDeleted: 0n,
					writes: 2n,
				},
			});
			expect(taken?.storage?.watches).toBeGreaterThan(2n);
			return taken;
		}, 300_000);
		if (overview === undefined) {
			throw new Error("the response has no overview");
		}
		const { servers, controllers, storage } = overview;
		expect(servers).toMatchObject([{ server: { missing: "" }, process: {}, storage: {} }]);
		expect(servers[0]?.process?.heapLimitBytes).toBeGreaterThan(0n);
		expect(storage).toMatchObject({ kind: "memory" });
		expect(storage?.commits).toBeGreaterThan(2n);
		const recent = storage?.commitDurations.reduce((sum, count) => sum + count, 0n);
		// One that is just being made is counted before it has a duration.
		expect(recent).toBeGreaterThan(2n);
		expect(recent).toBeLessThanOrEqual(storage?.commits ?? 0n);
		expect(storage?.batches).toBeGreaterThan(2n);
		expect(storage?.batchedCommits).toBe(storage?.batches);
		// In memory, most take less than half a millisecond.
		const { seconds = 0n, nanos = 0 } = storage?.commitP99 ?? {};
		expect(Number(seconds) * 1e9 + nanos).toBeGreaterThan(0);
		const { controller } = controllers.find((each) => each.controller?.name === "critic") ?? {};
		expect(controller).toMatchObject({ requests: { failing: 1 }, manages: Artist.key });
		expect(JSON.stringify(toJson(OverviewSchema, overview))).not.toContain(unusual);
	});

	it("has the leases of servers, and of clients those that the caller may hold", async () => {
		const authorizer = policies();
		for (const [subject, prefix] of [
			["ann", { namePrefix: "tour" }],
			["root", {}],
		] as const) {
			const rules = [
				{ operations: ["operator:read"], type: "internal.v1.Server" },
				{ operations: ["operator:lease"], type: "internal.v1.Lease", ...prefix },
			];
			authorizer.grant(subject, { subject, rules });
		}
		const server = await startServer({ authorizer, modules: [music] });
		const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "2" });
		const leases = createClient(LeaseService, transport);
		for (const name of ["tour-1", "album"]) {
			await leases.acquire({ name, holder: "h1" }, as("root"));
		}
		const seenBy = async (token: string) => {
			const { overview } = await clientOf(server).getOverview({}, as(token));
			const names = overview?.leases.filter(({ kind }) => kind === LeaseKind.CLIENT);
			expect(overview?.leases).toContainEqual(
				expect.objectContaining({
					...{ kind: LeaseKind.SINGLETONS, name: "controllers" },
					server: overview?.servers[0]?.server?.name,
				}),
			);
			expect(overview?.leases.find(({ name }) => name === "album")?.expiresAt).toEqual(
				token === "root" ? expect.anything() : undefined,
			);
			return { names: names?.map(({ name }) => name), total: overview?.leasesTotal };
		};
		await vi.waitFor(() => seenBy("operator"), 300_000);
		const { total } = await seenBy("operator");
		expect(await seenBy("operator")).toEqual({ names: [], total });
		expect(await seenBy("ann")).toEqual({ names: ["tour-1"], total });
		expect(await seenBy("root")).toEqual({ names: ["album", "tour-1"], total });
		// However many there are that the caller may not see. They end unless they are acquired again.
		const many = ["tour-1", ...Array.from({ length: 150 }, (_, at) => `other-${at}`)];
		await vi.waitFor(async () => {
			await Promise.all(many.map((name) => leases.acquire({ name, holder: "h1" }, as("root"))));
			const seen = await seenBy("ann");
			expect(seen.total).toBeGreaterThan(150);
			expect(seen.names).toEqual(["tour-1"]);
		}, 300_000);
		const messages = clientOf(server).watchOverview({}, as("ann"))[Symbol.asyncIterator]();
		const { done, value } = await messages.next();
		const streamed = done === true ? [] : value.overview?.leases.map(({ name }) => name);
		expect(streamed).toContain("tour-1");
		expect(streamed).not.toContain("album");
	});

	it("is refused without the right to it, whatever other rights there are", async () => {
		const server = await startServer({ authorizer: policies(), modules: [music] });
		const client = clientOf(server);
		const code = async (call: Promise<unknown>) => {
			const error = ConnectError.from(await call.catch((failure) => failure));
			expect(error.rawMessage).not.toContain("music");
			return error.code;
		};
		const first = (token: string) =>
			client.watchOverview({}, as(token))[Symbol.asyncIterator]().next();
		for (const token of ["reporter", "fan"]) {
			expect(await code(client.getOverview({}, as(token)))).toBe(Code.PermissionDenied);
			expect(await code(first(token))).toBe(Code.PermissionDenied);
		}
		expect(await code(client.getOverview({}))).toBe(Code.Unauthenticated);
		expect(await code(first("unknown"))).toBe(Code.Unauthenticated);
		await expect(client.getOverview({}, as("operator"))).resolves.toBeDefined();
	});
});

describe("a stream of overviews", () => {
	it("begins at once, and goes on with rates", async () => {
		const server = await startServer({ modules: [music] });
		const stop = new AbortController();
		const interval = durationFromMs(1_000);
		const messages = clientOf(server)
			.watchOverview({ interval }, { signal: stop.signal })
			[Symbol.asyncIterator]();
		const next = async () => {
			const { done, value } = await messages.next();
			return done === true ? undefined : value.overview;
		};
		const first = await next();
		expect(first?.types.length).toBeGreaterThan(0);
		expect(first?.rateInterval).toBeUndefined();
		await server.client.write({ resource: artist("miles") });
		const overview = await next();
		expect(overview?.rateInterval).toBeDefined();
		const written = overview?.types.find(({ type }) => type === Artist.key);
		expect(written?.writesPerSecond).toBeGreaterThan(0);
		expect(overview?.storage?.commitsPerSecond).toBeGreaterThan(0);
		expect(overview?.servers[0]?.process?.cpu).toBeGreaterThan(0);
		stop.abort();
		await expect(messages.next()).rejects.toMatchObject({ code: Code.Canceled });
	});

	it.each<[string, WatchOverviewRequest["interval"] & object]>([
		["no time", durationFromMs(0)],
		["a short time", durationFromMs(999)],
		["a negative time", durationFromMs(-5_000)],
		["a long time", durationFromMs(61_000)],
		["ten thousand years", durationFromMs(315_576_000_000_000)],
	])("is refused with an interval of %s", async (_, interval) => {
		const server = await startServer();
		const messages = clientOf(server).watchOverview({ interval })[Symbol.asyncIterator]();
		await expect(messages.next()).rejects.toMatchObject({
			code: Code.InvalidArgument,
			rawMessage: "interval must be from 1 s to 60 s",
		});
	});

	it("ends when the rights of the caller are revoked", async () => {
		const authorizer = policies();
		const server = await startServer({ authorizer });
		const messages = clientOf(server).watchOverview({}, as("operator"))[Symbol.asyncIterator]();
		await messages.next();
		const next = messages.next();
		authorizer.revoke("operator");
		await expect(next).rejects.toMatchObject({ code: Code.Unauthenticated });
	});

	it("ends when the server stops", async () => {
		const server = await startServer();
		const messages = clientOf(server).watchOverview({})[Symbol.asyncIterator]();
		await messages.next();
		const next = messages.next();
		const stopped = server.stop();
		await expect(next).rejects.toMatchObject({ code: Code.Unavailable });
		await stopped;
	});
});
