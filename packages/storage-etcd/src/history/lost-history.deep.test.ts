import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
	type LogMethod,
	type Runtime,
	silentLogger,
	systemRandom,
	systemRuntime,
	systemScheduler,
} from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { CasFailure, StorageUnavailable, VersionCompacted, WatchClosed } from "@plinth/storage";
import {
	ArtistWatch,
	allArtists,
	idOfArtist,
	listArtists,
	putArtist,
} from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { afterEach, expect, it } from "vitest";
import { EtcdClient } from "../client/etcd-client.ts";
import { createEtcdBackend, type EtcdBackend, type EtcdBackendOptions } from "../etcd-backend.ts";
import { EtcdProcess } from "../etcd-process.fixture.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "../keys.ts";
import { EtcdLeases } from "../leases/etcd-leases.ts";
import { TcpProxy } from "../tcp-proxy.fixture.ts";
import { declareRestored } from "./declare-restored.ts";

const strong = { consistency: "strong" } as const;
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
	for (const cleanup of cleanups.splice(0).reverse()) {
		await cleanup();
	}
});

async function startEtcd(): Promise<EtcdProcess> {
	const etcd = await EtcdProcess.start();
	cleanups.push(() => etcd.dispose());
	return etcd;
}

async function proxyTo(url: string): Promise<TcpProxy> {
	const proxy = await TcpProxy.to(url);
	cleanups.push(() => proxy.dispose());
	return proxy;
}

/** A server, and how often it reported that its storage failed. */
interface Opened {
	readonly backend: EtcdBackend;
	readonly failures: readonly Error[];
}

async function open(
	endpoints: readonly string[],
	options: Partial<EtcdBackendOptions> = {},
): Promise<Opened> {
	const failures: Error[] = [];
	const backend = await createEtcdBackend({
		endpoints,
		requestTimeoutMs: 3000,
		onFailed: (failure) => failures.push(failure),
		...options,
	});
	cleanups.push(() => backend.close());
	return { backend, failures };
}

/** Commits one after the other; returns the version of the last one. */
async function commitMany(
	backend: EtcdBackend,
	prefix: string,
	count: number,
	text = "",
): Promise<string> {
	let version = "";
	for (let index = 0; index < count; index++) {
		({ version } = await backend.commit([putArtist(`${prefix}-${index}`, text)]));
	}
	return version;
}

/** Commits until one goes through: the members may have to elect a leader. */
async function commitOnce(backend: EtcdBackend, prefix: string): Promise<void> {
	for (let attempt = 0; ; attempt++) {
		try {
			await backend.commit([putArtist(`${prefix}-${attempt}`)]);
			return;
		} catch (error) {
			if (!(error instanceof StorageUnavailable) || backend.historyLost.aborted) {
				throw error;
			}
		}
	}
}

/** Checks that a server sends nothing more, and says so. */
async function expectLatched({ backend, failures }: Opened): Promise<void> {
	await expect(backend.commit([putArtist("late")])).rejects.toThrow("lost history");
	await expect(backend.read(idOfArtist("late"), strong)).rejects.toThrow("lost history");
	await expect(backend.commit([putArtist("late")])).rejects.toThrow(StorageUnavailable);
	await expect(backend.commit([putArtist("late")], { dryRun: true })).rejects.toThrow(
		"lost history",
	);
	expect(await new ArtistWatch(backend).failure()).toBeInstanceOf(WatchClosed);
	expect(backend.historyLost.aborted).toBe(true);
	expect(failures.map(({ message }) => message)).toEqual([
		expect.stringContaining("this server must be restarted"),
	]);
}

/** Checks that servers that start now agree, and that no version from before means anything to them. */
async function expectFreshAgree(
	endpoints: readonly string[],
	oldVersion: string,
	names: readonly string[],
): Promise<void> {
	const [one, other] = [await open(endpoints), await open(endpoints)];
	for (const { backend } of [one, other]) {
		expect((await listArtists(backend)).map((each) => each.split("=")[0])).toEqual(names);
		expect(await new ArtistWatch(backend, oldVersion).failure()).toBeInstanceOf(VersionCompacted);
	}
	const { version } = await one.backend.commit([putArtist("fresh", "1")]);
	expect(Number(version)).toBeGreaterThan(Number(oldVersion));
	const stale = other.backend.commit([putArtist("fresh", "2", oldVersion)]);
	await expect(stale).rejects.toThrow(CasFailure);
	await other.backend.commit([putArtist("fresh", "2", version)]);
	await one.backend.catchUp(new AbortController().signal);
	expect(await listArtists(one.backend)).toEqual(await listArtists(other.backend));
}

/** A runtime in which the next proof of a server without commits is always late: it comes after 7 s. */
const withoutPeriodicProof: Runtime = {
	...systemRuntime,
	random: { next: () => 0.999 },
	clock: {
		now: () => systemRuntime.clock.now(),
		monotonic: () => systemRuntime.clock.monotonic(),
		setTimer: (delayMs, callback) =>
			delayMs > 7000 ? { cancel() {} } : systemRuntime.clock.setTimer(delayMs, callback),
	},
};

describeWith("etcd")("an etcd that went back in time under running servers", () => {
	it("is written by no server that has seen more, when it was put back to an older copy and overtaken", async () => {
		const etcd = await startEtcd();
		const way = await proxyTo(etcd.url);
		const writer = await open([way.url]);
		const reader = await open([way.url]);
		await commitMany(writer.backend, "kept", 3);
		await etcd.copy();
		const lastSeen = await commitMany(writer.backend, "lost", 5);
		await reader.backend.catchUp(new AbortController().signal);
		way.cut();
		await etcd.bringBack();
		await etcd.restart();
		const newcomer = await open([etcd.url]);
		expect(await commitMany(newcomer.backend, "new", 9)).not.toBe(lastSeen);
		way.mend();
		await expectLatched(writer);
		await expectLatched(reader);
		await writer.backend.close();
		await reader.backend.close();
		// The servers that noticed have begun a new incarnation: who knows the one before can't write either.
		await expectLatched(newcomer);
		const names = ["kept-0", "kept-1", "kept-2"];
		names.push(...Array.from({ length: 9 }, (_, index) => `new-${index}`));
		await expectFreshAgree([etcd.url], lastSeen, names);
	});

	it("is written by no server that knows another one, when it was wiped and overtaken", async () => {
		const etcd = await startEtcd();
		const way = await proxyTo(etcd.url);
		const server = await open([way.url]);
		const lastSeen = await commitMany(server.backend, "lost", 5);
		way.cut();
		await etcd.forget();
		await etcd.restart();
		const newcomer = await open([etcd.url]);
		await commitMany(newcomer.backend, "new", 9);
		way.mend();
		await expectLatched(server);
		const names = Array.from({ length: 9 }, (_, index) => `new-${index}`);
		// The newcomer made a store of its own, which the server that noticed leaves alone.
		await newcomer.backend.commit([putArtist("more")]);
		await expectFreshAgree([etcd.url], lastSeen, ["more", ...names]);
	});

	it("gives out no version twice when it was wiped under a server that was alone", async () => {
		const etcd = await startEtcd();
		const server = await open([etcd.url]);
		const lastSeen = await commitMany(server.backend, "lost", 5);
		await etcd.forget();
		await etcd.restart();
		await expectLatched(server);
		await server.backend.close();
		await expectFreshAgree([etcd.url], lastSeen, []);
	});

	it("gives out no version twice when a copy brings back an incarnation from before", async () => {
		const etcd = await startEtcd();
		const endpoints = [etcd.url];
		const first = await open(endpoints);
		await commitMany(first.backend, "kept", 1);
		await first.backend.close();
		await etcd.copy();
		await declareRestored({ endpoints });
		const server = await open(endpoints);
		expect(server.backend.identity.restores).toBe(1);
		const lastSeen = await commitMany(server.backend, "lost", 5);
		await etcd.bringBack();
		await etcd.restart();
		await expectLatched(server);
		await server.backend.close();
		await expectFreshAgree(endpoints, lastSeen, ["kept-0"]);
	});

	it("is written by no server that has seen more, when its quorum was rebuilt from a member that was behind", async () => {
		const members = await EtcdProcess.startCluster(3);
		cleanups.push(async () => {
			await Promise.all(members.map((member) => member.dispose()));
		});
		const [first, second, behind] = members;
		if (first === undefined || second === undefined || behind === undefined) {
			throw new TypeError("three members");
		}
		const ways = await Promise.all(members.map(({ url }) => proxyTo(url)));
		const urls = ways.map(({ url }) => url);
		const server = await open(urls);
		await commitMany(server.backend, "kept", 3);
		await behind.kill();
		await commitOnce(server.backend, "lost-first");
		const lastSeen = await commitMany(server.backend, "lost", 5);
		for (const way of ways) {
			way.cut();
		}
		await first.kill();
		await second.kill();
		await behind.restart("--force-new-cluster");
		const newcomer = await open([behind.url]);
		await commitOnce(newcomer.backend, "new-first");
		await commitMany(newcomer.backend, "new", 9);
		for (const way of ways) {
			way.mend();
		}
		await expectLatched(server);
		await server.backend.close();
		await expectLatched(newcomer);
		const names = (await listArtists(newcomer.backend)).map((each) => each.split("=")[0] ?? "");
		expect(names.filter((name) => name.startsWith("lost"))).toEqual([]);
		await expectFreshAgree([behind.url], lastSeen, names);
	});

	it("leaves nothing behind in a server that loads again, where nothing could be proven", async () => {
		const etcd = await startEtcd();
		const way = await proxyTo(etcd.url);
		const drawing = (slot: number) => ({
			runtime: { ...systemRuntime, random: { ...systemRandom, next: () => slot / 4096 } },
		});
		const server = await open([way.url], drawing(1));
		await server.backend.commit([putArtist("kept")]);
		await etcd.copy();
		const { version } = await server.backend.commit([putArtist("same", "lost")]);
		way.cut();
		await etcd.bringBack();
		await etcd.restart();
		// Another transaction gets the revision, the slot of the server's mark is used again, and etcd compacts both.
		const one = await open([etcd.url], drawing(2048));
		expect((await one.backend.commit([putArtist("same", "new")])).version).toBe(version);
		const other = await open([etcd.url], drawing(2));
		const newest = await other.backend.commit([putArtist("other")]);
		const client = new EtcdClient({ endpoints: [etcd.url] });
		cleanups.push(async () => client.close());
		await client.compact(BigInt(Number(newest.version) - other.backend.identity.versionOffset));
		way.mend();
		await server.backend.catchUp(new AbortController().signal);
		expect(server.backend.historyLost.aborted).toBe(false);
		expect(await listArtists(server.backend)).toEqual(["kept=", "other=", "same=new"]);
	});

	it("is not followed by a server whose mark was compacted, when its watch breaks", async () => {
		const etcd = await startEtcd();
		const way = await proxyTo(etcd.url);
		const client = new EtcdClient({ endpoints: [etcd.url] });
		cleanups.push(async () => client.close());
		const noticed = Promise.withResolvers<void>();
		const info: LogMethod = (_, message) => {
			if (message.includes("nothing was missed")) {
				noticed.resolve();
			}
		};
		const server = await open([way.url], {
			logger: { ...silentLogger, info },
			runtime: withoutPeriodicProof,
		});
		await server.backend.commit([putArtist("kept")]);
		await etcd.copy();
		const { version } = await server.backend.commit([putArtist("same", "lost")]);
		way.cut();
		const elsewhere = await open([etcd.url], { prefix: `/${randomUUID()}` });
		const newest = await elsewhere.backend.commit([putArtist("elsewhere")]);
		const { versionOffset } = elsewhere.backend.identity;
		await elsewhere.backend.close();
		await client.compact(BigInt(Number(newest.version) - versionOffset));
		way.mend();
		await noticed.promise;
		way.cut();
		await etcd.bringBack();
		await etcd.restart();
		const newcomer = await open([etcd.url]);
		expect((await newcomer.backend.commit([putArtist("same", "new")])).version).toBe(version);
		await commitMany(newcomer.backend, "new", 9);
		way.mend();
		while (!server.backend.historyLost.aborted) {
			expect(await listArtists(server.backend)).not.toContain("new-8=");
			await new Promise((resolve) => setImmediate(resolve));
		}
		await expectLatched(server);
	});

	it("is distinguished from another cluster that responds, whose store is left unchanged", async () => {
		const [etcd, another] = [await startEtcd(), await startEtcd()];
		const there = await open([another.url]);
		const server = await open([etcd.url, another.url]);
		await commitMany(server.backend, "kept", 1);
		await etcd.kill();
		// A commit that was sent on the connection that broke is unknown, until its time is over.
		while (!server.backend.historyLost.aborted) {
			await expect(server.backend.commit([putArtist("late")])).rejects.toThrow(StorageUnavailable);
		}
		await expect(server.backend.commit([putArtist("late")])).rejects.toThrow("two clusters");
		await expectLatched(server);
		await server.backend.close();
		await there.backend.commit([putArtist("there")]);
		expect(await listArtists((await open([another.url])).backend)).toEqual(["there="]);
	});

	it("is noticed by a server that only watches, which a restored etcd would send nothing", async () => {
		const etcd = await startEtcd();
		const clock = new FakeClock();
		const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
		const writer = await open([etcd.url]);
		const idle = await open([etcd.url], { runtime });
		await etcd.copy();
		await commitMany(writer.backend, "lost", 5);
		const watch = new ArtistWatch(idle.backend);
		await watch.snapshot();
		await etcd.bringBack();
		await etcd.restart();
		while (!idle.backend.historyLost.aborted) {
			await clock.advanceAsync(100);
			await new Promise((resolve) => setImmediate(resolve));
		}
		expect(await watch.failure()).toBeInstanceOf(WatchClosed);
	});

	it("ends leases, and grants none to a server that noticed", async () => {
		const etcd = await startEtcd();
		const server = await open([etcd.url]);
		const leases = new EtcdLeases({ endpoints: [etcd.url], signal: server.backend.historyLost });
		cleanups.push(() => leases.close());
		await etcd.copy();
		const hold = await leases.acquire("singletons", new AbortController().signal);
		const waiting = new AbortController();
		const another = leases.acquire("singletons", waiting.signal);
		const fenced = await server.backend.commit([putArtist("a")], { fence: hold.fence });
		expect(fenced.version).not.toBe("");
		await etcd.bringBack();
		await etcd.restart();
		await expect(server.backend.commit([putArtist("b")], { fence: hold.fence })).rejects.toThrow(
			"lost history",
		);
		expect(hold.signal.aborted).toBe(true);
		const third = leases.acquire("singletons", waiting.signal);
		waiting.abort(new Error("enough"));
		await expect(another).rejects.toThrow("enough");
		await expect(third).rejects.toThrow("enough");
	});

	it("is not mistaken for one that lost its connections, its leader or its old revisions", async () => {
		const etcd = await startEtcd();
		const client = new EtcdClient({ endpoints: [etcd.url] });
		cleanups.push(async () => client.close());
		const one = await open([etcd.url]);
		const other = await open([etcd.url]);
		for (let round = 0; round < 3; round++) {
			const version = await commitMany(one.backend, `round-${round}`, 5);
			await client.compact(BigInt(Number(version) - one.backend.identity.versionOffset));
			await etcd.kill();
			await etcd.restart();
			await commitMany(other.backend, `other-${round}`, 5).catch((error: unknown) => {
				expect(error).toBeInstanceOf(StorageUnavailable);
				expect(String(error)).not.toContain("lost history");
			});
		}
		await one.backend.commit([putArtist("last")]);
		await other.backend.catchUp(new AbortController().signal);
		expect(await listArtists(other.backend)).toEqual(await listArtists(one.backend));
		expect([one.backend.historyLost.aborted, other.backend.historyLost.aborted]).toEqual([
			false,
			false,
		]);
	});
});

describeWith("etcd")("the identity of a store", () => {
	it("is written once by servers that start together, and leaves versions of a running cluster as they are", async () => {
		const etcd = await startEtcd();
		const prefix = `/${randomUUID()}`;
		// What a server of an older version leaves: a head without a mark, and no identity.
		const client = new EtcdClient({ endpoints: [etcd.url] });
		cleanups.push(async () => client.close());
		const keys = new Keys(prefix);
		const older = async () => {
			const value = { key: keys.head, value: Buffer.from(`${randomUUID()}/1`) };
			const { header } = await client.transaction(
				create(TxnRequestSchema, { success: [{ request: { case: "requestPut", value } }] }),
			);
			return String(header?.revision);
		};
		const before = await older();
		const servers = await Promise.all([1, 2, 3].map(() => open([etcd.url], { prefix })));
		const identities = new Set(servers.map(({ backend }) => backend.identity.incarnation));
		expect(identities.size).toBe(1);
		const [first, second] = servers;
		expect((await first?.backend.list(allArtists))?.version).toBe(before);
		await first?.backend.commit([putArtist("a")]);
		const beside = await older();
		expect(await second?.backend.catchUp(new AbortController().signal)).toBe(beside);
		await second?.backend.commit([putArtist("b")]);
		await first?.backend.commit([putArtist("c")]);
		expect(servers.map(({ backend }) => backend.historyLost.aborted)).toEqual([
			false,
			false,
			false,
		]);
	});

	it("stops servers when it is deleted, or replaced by one that is none", async () => {
		const etcd = await startEtcd();
		const client = new EtcdClient({ endpoints: [etcd.url] });
		cleanups.push(async () => client.close());
		const { backend } = await open([etcd.url]);
		const { identity } = new Keys("/plinth");
		const value = { key: identity, value: Buffer.from("nonsense") };
		await client.transaction(
			create(TxnRequestSchema, { success: [{ request: { case: "requestPut", value } }] }),
		);
		await expect(backend.commit([putArtist("a")])).rejects.toThrow("a different incarnation");
		await expect(open([etcd.url])).rejects.toThrow("identity of a store");
	});
});
