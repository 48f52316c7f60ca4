/** Sets of watches that an agent serves from its caches. */
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { WatchEvent, WatchSetEvent } from "@plinth/proto";
import { idOf, resourceOf, type TypeLike, typeOf } from "@plinth/resource";
import { EtcdProcess, TcpProxy } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TourSchema } from "../../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, artist, musicModule, Tour, toursModule } from "../../../testdata/music.ts";
import { outcome, tokensOf } from "../../callers.fixture.ts";
import { filesOf } from "../../certificates.fixture.ts";
import { musicModuleFile, ServerProcess } from "../../server-process.fixture.ts";
import { readiness } from "../started-agent.fixture.ts";
import {
	type CachedClient,
	cacheIs,
	clientOf,
	metric,
	secret,
	startCachedAgent,
	startCachedServer,
	users,
} from "./cached-agent.fixture.ts";
import { changesIn, isLive, RecordedStream, versionAfter } from "./recorded-stream.fixture.ts";

const artists = { type: typeOf(Artist.type) };
const tours = { type: typeOf(Tour.type) };

function accessOf(granted: Readonly<Record<string, string>> = users): string {
	return `policies:
  agent: [{ operations: [operator:read], type: music.v1.Artist }, { operations: [operator:read], type: tours.v1.Tour }]
  artists: [{ operations: [operator:read], type: music.v1.Artist }]
  reader: [{ operations: [operator:read], type: "music.*" }, { operations: [operator:read], type: "tours.*" }]
  some: [{ operations: [operator:read], type: music.v1.Artist, namePrefix: a }]
  writer: [{ operations: ["*"] }]
${tokensOf(granted)}`;
}

const tour = (name: string) =>
	resourceOf(Tour, { id: idOf(Tour, name), data: create(TourSchema, {}) });

/** A server with two types, an artist and a tour. */
async function startWithTours() {
	const started = await startCachedServer({ modules: [musicModule(), toursModule()] });
	await started.setAccess(accessOf());
	await started.server.client.write({ resource: artist("anna") });
	await started.server.client.write({ resource: tour("autumn") });
	return started;
}

/** Such a server, and an agent with caches of the types. */
async function start(types: readonly TypeLike[] = [Artist.type, Tour.type]) {
	const started = await startWithTours();
	const agent = await startCachedAgent([started.port], { types });
	for (const { group, groupVersion, kind } of types) {
		await cacheIs(agent, "used", `${group}.${groupVersion}.${kind}`);
	}
	return { ...started, agent };
}

interface Request {
	readonly type: ReturnType<typeof typeOf>;
	readonly afterVersion?: string;
	readonly namePrefix?: string;
}

/** A set of watches that remembers what it has received, and how it has ended. */
class RecordedSet {
	readonly #stream: RecordedStream<WatchSetEvent>;
	readonly #ids: readonly string[];

	constructor({ resources }: CachedClient, requests: Readonly<Record<string, Request>>) {
		this.#ids = Object.keys(requests);
		const watches = Object.entries(requests).map(([id, request]) => ({
			id,
			request: { ...request, bookmarks: true },
		}));
		this.#stream = new RecordedStream((signal) => resources.watchSet({ watches }, { signal }));
	}

	/** Why the stream has ended. */
	get failure(): string {
		return this.#stream.failure?.message ?? "";
	}

	changes(id: string): readonly string[] {
		return changesIn(this.#eventsOf(id));
	}

	/** The last version that another watch may resume after. */
	version(id: string): string {
		return versionAfter(this.#eventsOf(id));
	}

	/** The codes of the watches that have ended alone, by their ids. */
	get ends(): Readonly<Record<string, string | undefined>> {
		return Object.fromEntries(
			this.#stream.messages.flatMap(({ watchId, content }) =>
				content.case === "end" ? [[watchId, Code[content.value.code]]] : [],
			),
		);
	}

	/** Repeats a check until it passes. */
	until(check: () => void): Promise<void> {
		return this.#stream.until(check);
	}

	/** Waits until each snapshot is complete, but for those of watches that have ended. */
	async isLive(): Promise<void> {
		await this.until(() =>
			expect(this.#ids.filter((id) => !(id in this.ends || isLive(this.#eventsOf(id))))).toEqual(
				[],
			),
		);
	}

	/** Waits until the stream has ended, and returns the code; `Unknown` if all watches have ended before. */
	ended(): Promise<string> {
		return this.#stream.ended();
	}

	close(): void {
		this.#stream.close();
	}

	#eventsOf(id: string): readonly WatchEvent[] {
		return this.#stream.messages.flatMap(({ watchId, content }) =>
			watchId === id && content.case === "event" ? [content.value] : [],
		);
	}
}

const cachedWatches = "plinth_agent_cache_watches";

describe("a set of watches of cached types", () => {
	it("costs the servers nothing, and gets the events of each watch", async () => {
		const { agent, server } = await start();
		const client = clientOf(agent, "reader");
		const first = new RecordedSet(client, { artists, tours });
		await first.isLive();
		expect(client.wasCached()).toBe(true);
		const streams = await metric(server, "plinth_streams_open");
		expect(streams).toBeGreaterThan(0);
		const set = new RecordedSet(client, {
			artists,
			tours,
			named: { ...artists, namePrefix: "b" },
		});
		await set.isLive();
		expect(client.wasCached()).toBe(true);
		expect(await metric(server, "plinth_streams_open")).toBe(streams);
		await server.client.write({ resource: artist("bert") });
		await server.client.delete({ id: tour("autumn").id });
		await server.client.write({ resource: artist("carl") });
		await set.until(() =>
			expect([set.changes("artists"), set.changes("tours"), set.changes("named")]).toEqual([
				["upsert anna", "upsert bert", "upsert carl"],
				["upsert autumn", "delete autumn"],
				["upsert bert"],
			]),
		);
		expect(await metric(agent, cachedWatches)).toBe(5);
		set.close();
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(2);
		first.close();
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(0);
	});

	it("is forwarded if one of them is of another type", async () => {
		const { agent, server } = await start([Artist.type]);
		const client = clientOf(agent, "reader");
		const set = new RecordedSet(client, { artists, tours });
		await set.isLive();
		expect(client.wasCached()).toBe(false);
		await server.client.write({ resource: tour("winter") });
		await set.until(() => expect(set.changes("tours")).toEqual(["upsert autumn", "upsert winter"]));
		expect(set.changes("artists")).toEqual(["upsert anna"]);
		expect(await metric(agent, cachedWatches)).toBe(0);
	});

	it("is forwarded if servers must decide how many watches it may have", async () => {
		const { agent } = await start();
		const client = clientOf(agent, "reader");
		const requests = Array.from({ length: 100 }, (_, index) => [`watch-${index}`, artists]);
		const largest = new RecordedSet(client, Object.fromEntries(requests));
		await largest.isLive();
		expect(client.wasCached()).toBe(true);
		const larger = new RecordedSet(client, { ...Object.fromEntries(requests), tours });
		expect(await larger.ended()).toBe("InvalidArgument");
		expect(larger.failure).toContain("has 101 entries, more than 100");
		expect(client.wasCached()).toBe(false);
		expect(await metric(agent, "plinth_agent_cache_calls_total", 'outcome="forwarded"')).toBe(1);
	});

	it("is forwarded if it would exceed the limit of its subject", async () => {
		const { agent } = await start();
		const client = clientOf(agent, "reader");
		const requests = Object.fromEntries(
			Array.from({ length: 100 }, (_, index) => [`watch-${index}`, tours]),
		);
		const sets = Array.from({ length: 50 }, () => new RecordedSet(client, requests));
		for (const set of sets) {
			await set.isLive();
		}
		expect(await metric(agent, cachedWatches)).toBe(5_000);
		const next = new RecordedSet(client, { artists, tours });
		await next.isLive();
		expect(client.wasCached()).toBe(false);
		const other = clientOf(agent, "writer");
		await new RecordedSet(other, { artists, tours }).isLive();
		expect(other.wasCached()).toBe(true);
		sets[0]?.close();
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(4_902);
		const again = new RecordedSet(client, { artists, tours });
		await again.isLive();
		expect(client.wasCached()).toBe(true);
	});

	it("shows what the caller may see, and a watch that is refused ends alone", async () => {
		const { agent, server } = await start();
		await server.client.write({ resource: artist("bert") });
		const client = clientOf(agent, "some");
		const set = new RecordedSet(client, { artists, tours });
		await set.isLive();
		expect(client.wasCached()).toBe(true);
		expect(set.ends).toEqual({ tours: "PermissionDenied" });
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(1);
		await server.client.write({ resource: artist("carl") });
		await server.client.write({ resource: artist("amy") });
		await set.until(() => expect(set.changes("artists")).toEqual(["upsert anna", "upsert amy"]));
		expect(set.failure).toBe("");
	});

	it("counts for its first watch until its response has ended, as at a server", async () => {
		const { agent } = await start();
		const set = new RecordedSet(clientOf(agent, "some"), { tours, artists });
		await set.isLive();
		expect(set.ends).toEqual({ tours: "PermissionDenied" });
		expect(await metric(agent, cachedWatches)).toBe(2);
		set.close();
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(0);
	});

	it.each(["007", "00", "1e3"])("is refused as at a server if it names %s", async (position) => {
		const { agent, server } = await start();
		const headers = { "x-plinth-not-before": position };
		const direct = new RecordedSet(clientOf(server, "reader", headers), { artists, tours });
		expect(await direct.ended()).toBe("InvalidArgument");
		expect(direct.failure).toContain(`"${position}" is not a version`);
		const client = clientOf(agent, "reader", headers);
		const set = new RecordedSet(client, { artists, tours });
		expect(await set.ended()).toBe("InvalidArgument");
		expect(set.failure).toBe(direct.failure);
		expect(set.ends).toEqual({});
		const read = { id: idOf(Artist, "anna") };
		expect(await outcome(client.resources.read(read))).toBe(
			await outcome(clientOf(server, "reader", headers).resources.read(read)),
		);
	});

	it("has all that the version names which the client has seen", async () => {
		const { agent, server } = await start();
		for (let count = 1; count <= 20; count += 1) {
			const name = `tour-${count}`;
			const { resource } = await server.client.write({ resource: tour(name) });
			const client = clientOf(agent, "reader", { "x-plinth-not-before": resource?.version ?? "" });
			const set = new RecordedSet(client, { artists, tours });
			await set.isLive();
			expect(set.changes("tours")).toContain(`upsert ${name}`);
			set.close();
		}
		const future = clientOf(agent, "reader", { "x-plinth-not-before": "9000000000000000" });
		expect(await new RecordedSet(future, { artists, tours }).ended()).toBe("OutOfRange");
		expect(future.wasCached()).toBe(false);
	});

	it("resumes each watch after its version, and one that a cache does not reach back to ends alone", async () => {
		const { agent, server } = await start();
		const client = clientOf(agent, "reader");
		const set = new RecordedSet(client, { artists, tours });
		await set.isLive();
		const [ofArtists, ofTours] = [set.version("artists"), set.version("tours")];
		await server.client.write({ resource: artist("bert") });
		await server.client.write({ resource: tour("winter") });
		await server.client.delete({ id: artist("anna").id });
		const resumed = new RecordedSet(client, {
			artists: { ...artists, afterVersion: ofArtists },
			tours: { ...tours, afterVersion: ofTours },
			early: { ...artists, afterVersion: "1" },
		});
		await resumed.until(() => {
			expect(resumed.changes("artists")).toEqual(["upsert bert", "delete anna"]);
			expect(resumed.changes("tours")).toEqual(["upsert winter"]);
			expect(resumed.ends).toEqual({ early: "OutOfRange" });
		});
		expect(client.wasCached()).toBe(true);
		expect(resumed.failure).toBe("");
	});

	it("ends each watch with Aborted when the caches are dropped, and is forwarded while they are not used", async () => {
		const { agent, setAccess } = await start();
		const client = clientOf(agent, "reader");
		const set = new RecordedSet(client, { artists, tours });
		await set.isLive();
		await setAccess(accessOf({ ...users, agent: "artists" }));
		expect(await set.ended()).toBe("Unknown");
		expect(set.ends).toEqual({ artists: "Aborted", tours: "Aborted" });
		await cacheIs(agent, "not used", Tour.key);
		const forwarded = new RecordedSet(client, { artists, tours });
		await forwarded.isLive();
		expect(client.wasCached()).toBe(false);
		expect(forwarded.changes("tours")).toEqual(["upsert autumn"]);
	});

	it("ends with Unavailable when the agent stops", async () => {
		const { agent } = await start();
		const set = new RecordedSet(clientOf(agent, "reader"), { artists, tours });
		await set.isLive();
		await agent.stop();
		expect(await set.ended()).toBe("Unavailable");
	});
});

describe("the rights of a token", () => {
	it.each([
		["is revoked", Object.fromEntries(Object.entries(users).filter(([user]) => user !== "reader"))],
		["gets other rights", { ...users, reader: "some" }],
	])("end its sets at once when it %s", async (_, granted) => {
		const { agent, server, setAccess } = await start();
		const client = clientOf(agent, "reader");
		const set = new RecordedSet(client, { artists, tours });
		await set.isLive();
		expect(client.wasCached()).toBe(true);
		await setAccess(accessOf(granted));
		expect(await set.ended()).toBe("Unauthenticated");
		await server.client.write({ resource: artist("amy") });
		expect(set.changes("artists")).toEqual(["upsert anna"]);
		await expect.poll(() => metric(agent, cachedWatches), { timeout: 300_000 }).toBe(0);
	});

	it("end each watch with Unavailable when no server confirms them any more", async () => {
		const { agent, server } = await start();
		const set = new RecordedSet(clientOf(agent, "reader"), { artists, tours });
		await set.isLive();
		await server.stop();
		await set.ended();
		expect(set.ends).toEqual({ artists: "Unavailable", tours: "Unavailable" });
	});
});

/** Follows a set as a client does: watches that have ended are resumed, each after its version. */
class FollowedSet {
	readonly #client: CachedClient;
	readonly #requests: Readonly<Record<string, Request>>;
	readonly #sets: RecordedSet[] = [];

	constructor(client: CachedClient, requests: Readonly<Record<string, Request>>) {
		this.#client = client;
		this.#requests = requests;
		this.#sets.push(new RecordedSet(client, requests));
	}

	/** All that one of the watches was sent. */
	changes(id: string): readonly string[] {
		return this.#sets.flatMap((set) => set.changes(id));
	}

	async isLive(): Promise<void> {
		await this.#sets[0]?.isLive();
	}

	async until(id: string, change: string): Promise<void> {
		await vi.waitFor(
			() => {
				this.#resume();
				expect(this.changes(id)).toContain(change);
			},
			{ timeout: 300_000 },
		);
	}

	/** On a machine that is starved, the rights may not be confirmed for 10 s, and end. */
	#resume(): void {
		const last = this.#sets.at(-1);
		if (last === undefined || last.failure === "") {
			return;
		}
		expect(last.failure).toBe("[unknown] the stream has ended");
		const requests = Object.entries(this.#requests).map(([id, request]) => {
			expect(last.ends[id]).toBe("Unavailable");
			const set = this.#sets.findLast((each) => each.version(id) !== "");
			return [id, { ...request, afterVersion: set?.version(id) ?? "" }] as const;
		});
		this.#sets.push(new RecordedSet(this.#client, Object.fromEntries(requests)));
	}
}

const rounds = Array.from({ length: 5 }, (_, index) => index + 1);

it("a set sees no gap and no repetition when the connections of the agent are cut", async () => {
	const { server, port } = await startWithTours();
	const proxy = await TcpProxy.to(port);
	onTestFinished(() => proxy.dispose());
	const agent = await startCachedAgent([proxy.url], { types: [Artist.type, Tour.type] });
	await cacheIs(agent, "used");
	await cacheIs(agent, "used", Tour.key);
	const client = clientOf(agent, "reader");
	const set = new FollowedSet(client, { artists, tours });
	await set.isLive();
	expect(client.wasCached()).toBe(true);
	for (const round of rounds) {
		await server.client.write({ resource: artist(`before-${round}`) });
		await server.client.write({ resource: tour(`before-${round}`) });
		proxy.cut();
		proxy.mend();
		await server.client.write({ resource: tour(`after-${round}`) });
		await server.client.write({ resource: artist(`after-${round}`) });
		await set.until("artists", `upsert after-${round}`);
		await set.until("tours", `upsert after-${round}`);
	}
	const changes = rounds.flatMap((round) => [`upsert before-${round}`, `upsert after-${round}`]);
	expect(set.changes("artists")).toEqual(["upsert anna", ...changes]);
	expect(set.changes("tours")).toEqual(["upsert autumn", ...changes]);
});

describeWith("etcd")("a set of watches in front of a cluster", () => {
	it("loses and repeats nothing while servers are killed", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const { access, credential } = filesOf({ access: accessOf(), credential: secret });
		const startProcess = async (port = "0") => {
			const process = new ServerProcess(
				...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, "--listen=127.0.0.1:0"],
				...[`--module=${musicModuleFile}`, `--access-file=${access}`],
				...[`--agents-listen=127.0.0.1:${port}`, `--agents-credential-file=${credential}`],
			);
			await process.listening();
			const listens = /"address":"(127\.0\.0\.1:\d+)".*listens for agents/;
			const output = () => process.stdout + process.stderr;
			await expect.poll(output, { timeout: 300_000 }).toMatch(listens);
			return { process, address: `http://${listens.exec(output())?.[1]}` };
		};
		// The agent does not know this one, which writes.
		const { server } = await startCachedServer({
			storage: { kind: "etcd", endpoints: [etcd.url] },
		});
		const first = await startProcess();
		const second = await startProcess();
		const agent = await startCachedAgent([first.address, second.address]);
		await cacheIs(agent, "used");
		const client = clientOf(agent, "reader");
		const set = new FollowedSet(client, {
			artists,
			odd: { ...artists, namePrefix: "odd" },
		});
		await set.isLive();
		expect(client.wasCached()).toBe(true);
		let written = 0;
		const writeSome = async () => {
			for (let count = 0; count < 20; count += 1) {
				written += 1;
				await server.client.write({
					resource: artist(`${written % 2 === 0 ? "even" : "odd"}-${written}`),
				});
			}
		};
		await writeSome();
		first.process.kill("SIGKILL");
		await writeSome();
		await set.until("artists", `upsert even-${written}`);
		await first.process.ended;
		const { address } = await startProcess(new URL(first.address).port);
		await readiness(agent.address, new RegExp(`${address}: ready`));
		second.process.kill("SIGKILL");
		await writeSome();
		await set.until("artists", `upsert even-${written}`);
		await set.until("odd", `upsert odd-${written - 1}`);
		const numbers = Array.from({ length: written }, (_, index) => index + 1);
		expect(set.changes("artists")).toEqual(
			numbers.map((number) => `upsert ${number % 2 === 0 ? "even" : "odd"}-${number}`),
		);
		expect(set.changes("odd")).toEqual(
			numbers.filter((number) => number % 2 === 1).map((number) => `upsert odd-${number}`),
		);
		expect(await metric(agent, "plinth_agent_watch_moves_total")).toBeGreaterThan(0);
	}, 600_000);
});
