/** Watches that an agent serves from a cache, and what they cost the servers. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, toBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type WatchEvent, WatchListRequestSchema } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { TcpProxy } from "@plinth/storage-etcd/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../../testdata/music.ts";
import { tokensOf } from "../../callers.fixture.ts";
import { RequestBody } from "../../listener/request-body.ts";
import { enveloped, openSession, post } from "../../raw-calls.fixture.ts";
import {
	type CachedClient,
	cacheIs,
	clientOf,
	metric,
	policies,
	startCachedAgent,
	startCachedServer,
	users,
	whenCached,
} from "./cached-agent.fixture.ts";
import { changesIn, isLive, RecordedStream, versionAfter } from "./recorded-stream.fixture.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const type = typeOf(Artist.type);

async function start() {
	const started = await startCachedServer();
	await started.server.client.write({ resource: artist("anna") });
	const agent = await startCachedAgent([started.port]);
	await cacheIs(agent, "used");
	return { ...started, agent };
}

/** A watch that remembers what it has received, and how it has ended. */
class RecordedWatch {
	readonly #stream: RecordedStream<WatchEvent>;

	constructor({ resources }: CachedClient, afterVersion = "") {
		this.#stream = new RecordedStream((signal) =>
			resources.watchList({ type, afterVersion, bookmarks: true }, { signal }),
		);
	}

	get failure(): ConnectError | undefined {
		return this.#stream.failure;
	}

	get changes(): readonly string[] {
		return changesIn(this.#stream.messages);
	}

	/** The last version that another watch may resume after. */
	get version(): string {
		return versionAfter(this.#stream.messages);
	}

	async has(count: number): Promise<void> {
		await this.#stream.until(() => expect(this.changes.length).toBeGreaterThanOrEqual(count));
	}

	/** Waits until its snapshot is complete. */
	async isLive(): Promise<void> {
		await this.#stream.until((events) => expect(isLive(events)).toBe(true));
	}

	/** Waits until it has ended, and returns the code. */
	ended(): Promise<string> {
		return this.#stream.ended();
	}

	close(): void {
		this.#stream.close();
	}
}

describe("watches of a cached type", () => {
	it("cost the servers one watch, however many there are", async () => {
		const { agent, server } = await start();
		const client = clientOf(agent, "reader");
		const first = new RecordedWatch(client);
		await first.isLive();
		expect(client.wasCached()).toBe(true);
		const streams = await metric(server, "plinth_streams_open");
		expect(streams).toBeGreaterThan(0);
		const others = Array.from({ length: 999 }, () => new RecordedWatch(client));
		const watches = [first, ...others];
		await Promise.all(watches.map((watch) => watch.isLive()));
		await vi.waitFor(
			async () => expect(await metric(agent, "plinth_agent_cache_watches")).toBe(1_000),
			{ timeout: 300_000 },
		);
		expect(await metric(server, "plinth_streams_open")).toBe(streams);
		await server.client.write({ resource: artist("bert") });
		await Promise.all(watches.map((watch) => watch.has(2)));
		expect(new Set(watches.map(({ changes }) => changes.join()))).toEqual(
			new Set(["upsert anna,upsert bert"]),
		);
		for (const watch of watches) {
			watch.close();
		}
		await vi.waitFor(
			async () => expect(await metric(agent, "plinth_agent_cache_watches")).toBe(0),
			{ timeout: 300_000 },
		);
	});

	it("keep no memory of what their requests were read from", async () => {
		const { agent } = await start();
		const bodies: WeakRef<ArrayBufferLike>[] = [];
		const { putBack } = RequestBody.prototype;
		RequestBody.prototype.putBack = function (taken) {
			bodies.push(new WeakRef(taken.buffer));
			putBack.call(this, taken);
		};
		onTestFinished(() => {
			RequestBody.prototype.putBack = putBack;
		});
		// A message that repeats a field, which is empty, is decoded to a small one.
		const request = Buffer.concat([
			toBinary(WatchListRequestSchema, create(WatchListRequestSchema, { type })),
			Buffer.alloc(60_000, Buffer.from([0x1a, 0])),
		]).toString("latin1");
		const session = openSession(agent.address);
		for (let count = 0; count < 5; count += 1) {
			post(session, "/plinth.resource.v1.ResourceService/WatchList", enveloped(request), {
				...{ contentType: "application/grpc" },
				headers: { authorization: "Bearer reader-token" },
			});
		}
		await expect
			.poll(() => metric(agent, "plinth_agent_cache_watches"), { timeout: 300_000 })
			.toBe(5);
		expect(bodies).toHaveLength(5);
		await expect
			.poll(
				() => {
					collectGarbage();
					return bodies.filter((body) => body.deref() !== undefined).length;
				},
				{ timeout: 300_000 },
			)
			.toBe(0);
		expect(await metric(agent, "plinth_agent_cache_watches")).toBe(5);
	});

	it("wait for a cache that is being primed, instead of costing the servers one each", async () => {
		const { server, port } = await startCachedServer();
		const proxy = await TcpProxy.to(port);
		onTestFinished(() => proxy.dispose());
		const agent = await startCachedAgent([proxy.url]);
		await cacheIs(agent, "used");
		const client = clientOf(agent, "reader");
		const first = new RecordedWatch(client);
		await first.isLive();
		const next = await startCachedServer();
		await next.server.client.write({ resource: artist("zoe") });
		proxy.target = next.port;
		proxy.cut();
		proxy.mend();
		expect(await first.ended()).toBe("Aborted");
		const watches = Array.from({ length: 20 }, () => new RecordedWatch(client));
		await Promise.all(watches.map((watch) => watch.isLive()));
		expect(await metric(agent, "plinth_agent_cache_watches")).toBe(20);
		await server.stop();
	});

	it("resume after a version, and end with OutOfRange if the cache does not reach back to it", async () => {
		const { agent, server } = await start();
		const client = clientOf(agent, "reader");
		const watch = new RecordedWatch(client);
		await watch.isLive();
		const { version } = watch;
		await server.client.write({ resource: artist("bert") });
		await server.client.delete({ id: artist("anna").id });
		const resumed = new RecordedWatch(client, version);
		await resumed.has(2);
		expect(client.wasCached()).toBe(true);
		expect(resumed.changes).toEqual(["upsert bert", "delete anna"]);
		const early = new RecordedWatch(client, "1");
		expect(await early.ended()).toBe("OutOfRange");
		expect(client.wasCached()).toBe(true);
	});

	it("see no gap and no repetition when the connections of the agent are cut", async () => {
		const { server, port } = await startCachedServer();
		const proxy = await TcpProxy.to(port);
		onTestFinished(() => proxy.dispose());
		const agent = await startCachedAgent([proxy.url]);
		await cacheIs(agent, "used");
		const watch = new RecordedWatch(clientOf(agent, "reader"));
		await watch.isLive();
		for (let count = 1; count <= 5; count += 1) {
			await server.client.write({ resource: artist(`before-${count}`) });
			proxy.cut();
			proxy.mend();
			await server.client.write({ resource: artist(`after-${count}`) });
			await watch.has(2 * count);
		}
		expect(watch.changes).toEqual(
			[1, 2, 3, 4, 5].flatMap((count) => [`upsert before-${count}`, `upsert after-${count}`]),
		);
		expect(watch.failure).toBeUndefined();
	});

	it("end with Aborted when the cache is primed again, and can't be resumed then", async () => {
		const { agent, server, port } = await start();
		const watch = new RecordedWatch(clientOf(agent, "reader"));
		await watch.isLive();
		await server.stop();
		const next = await startCachedServer({}, Number(new URL(port).port));
		await next.server.client.write({ resource: artist("zoe") });
		expect(await watch.ended()).toBe("Aborted");
		await cacheIs(agent, "used");
		const client = clientOf(agent, "reader");
		expect(await new RecordedWatch(client, watch.version).ended()).toBe("OutOfRange");
		expect(client.wasCached()).toBe(true);
		const again = new RecordedWatch(client);
		await again.isLive();
		expect(again.changes).toEqual(["upsert zoe"]);
	});

	it("end with Unavailable when the agent stops", async () => {
		const { agent } = await start();
		const watch = new RecordedWatch(clientOf(agent, "reader"));
		await watch.isLive();
		await agent.stop();
		expect(await watch.ended()).toBe("Unavailable");
	});
});

describe("the rights of a token", () => {
	it("end at once when it is revoked", async () => {
		const { agent, setAccess } = await start();
		const client = clientOf(agent, "reader");
		const watch = new RecordedWatch(client);
		await watch.isLive();
		const { reader: _, ...others } = users;
		await setAccess(`${policies}${tokensOf(others)}`);
		expect(await watch.ended()).toBe("Unauthenticated");
		await expect(client.resources.list({ type, tenancy: {} })).rejects.toThrow(
			"the token is not known",
		);
	});

	it("are new ones when they change", async () => {
		const { agent, server, setAccess } = await start();
		await server.client.write({ resource: artist("bert") });
		const client = clientOf(agent, "reader");
		const watch = new RecordedWatch(client);
		await watch.isLive();
		await setAccess(`${policies}${tokensOf({ ...users, reader: "some" })}`);
		expect(await watch.ended()).toBe("Unauthenticated");
		const { resources } = await client.resources.list({ type, tenancy: {} });
		expect(resources.map(({ id }) => id?.name)).toEqual(["anna"]);
		expect(client.wasCached()).toBe(true);
	});

	it("end when the token expires", async () => {
		const { agent, setAccess } = await start();
		const expires = new Date(Date.now() + 4_000).toISOString();
		const tokens = tokensOf(users).replace(
			"policies: [reader]",
			`expires: ${expires}, policies: [reader]`,
		);
		await setAccess(`${policies}${tokens}`);
		const client = clientOf(agent, "reader");
		const watch = new RecordedWatch(client);
		expect(await watch.ended()).toBe("Unauthenticated");
		await expect(client.resources.list({ type, tenancy: {} })).rejects.toThrow(/expired|not known/);
	});

	it("end with Unavailable when no server confirms them any more", async () => {
		const { agent, server } = await start();
		const client = clientOf(agent, "reader");
		const watch = new RecordedWatch(client);
		await watch.isLive();
		await server.stop();
		expect(await watch.ended()).toBe("Unavailable");
		await expect(client.resources.list({ type, tenancy: {} })).rejects.toThrow(
			"no server is ready",
		);
		expect(await metric(agent, "plinth_agent_cache_tokens")).toBe(0);
	});

	it("end with Unavailable when what servers say does not arrive any more", async () => {
		const { port } = await startCachedServer();
		const proxy = await TcpProxy.to(port);
		onTestFinished(() => proxy.dispose());
		const agent = await startCachedAgent([proxy.url]);
		await cacheIs(agent, "used");
		const watch = new RecordedWatch(clientOf(agent, "reader"));
		await watch.isLive();
		proxy.block();
		expect(await watch.ended()).toBe("Unavailable");
		// Messages of that time arrive late: they renew nothing.
		proxy.unblock();
		await whenCached(agent, async ({ resources }) => {
			await resources.list({ type, tenancy: {} });
		});
	});

	it("of the agent are needed for its cache", async () => {
		const { agent, setAccess } = await start();
		const watch = new RecordedWatch(clientOf(agent, "reader"));
		await watch.isLive();
		await setAccess(`${policies}${tokensOf({ ...users, agent: "some" })}`);
		expect(await watch.ended()).toBe("Aborted");
		await cacheIs(agent, "not used");
		const client = clientOf(agent, "reader");
		expect((await client.resources.list({ type, tenancy: {} })).resources).toHaveLength(1);
		expect(client.wasCached()).toBe(false);
	});
});
