import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type LogMethod, silentLogger } from "@plinth/runtime";
import {
	CasFailure,
	type CommitBatch,
	Exhausted,
	StorageUnavailable,
	VersionCompacted,
	WatchClosed,
} from "@plinth/storage";
import {
	ArtistWatch,
	allArtists,
	artist,
	idOfArtist,
	listArtists,
	putArtist,
	textOf,
} from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { createEtcdBackend, type EtcdBackend } from "./etcd-backend.ts";
import { TxnRequestSchema } from "./gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "./keys.ts";
import { UnrecognizedData } from "./state/decode-resource.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

/** The revision of etcd that a version stands for. */
function revisionOf({ identity }: EtcdBackend, version: string): bigint {
	return BigInt(Number(version) - identity.versionOffset);
}

describeWith("etcd")("the etcd backend", () => {
	const etcd = useEtcd();

	it("stops loading at its signal, with the signal's reason", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		await Promise.all(
			Array.from({ length: 350 }, (_, index) =>
				first.commit([putArtist(`artist-${index}`, "text")]),
			),
		);
		const stop = new AbortController();
		const opening = open({ signal: stop.signal });
		stop.abort(new Error("enough"));
		await expect(opening).rejects.toThrow("enough");
		expect((await (await open()).list(allArtists)).resources).toHaveLength(350);
	});

	it("tells which commits it has stored together, and none of those that were not", async () => {
		const batches: CommitBatch[] = [];
		const backend = await etcd.cluster().backend({ onBatch: (batch) => batches.push(batch) });
		const names = Array.from({ length: 50 }, (_, index) => `artist-${index}`);
		await Promise.all(names.map((name) => backend.commit([putArtist(name)])));
		// The response of etcd may come after the change itself.
		const stored = () => batches.reduce((sum, { commits }) => sum + commits, 0);
		await expect.poll(stored).toBe(50);
		expect(batches.length).toBeLessThan(50);
		for (const { longestWaitMs, writeMs } of batches) {
			expect(Math.min(longestWaitMs, writeMs)).toBeGreaterThanOrEqual(0);
		}
		const again = await Promise.allSettled(names.map((name) => backend.commit([putArtist(name)])));
		expect(again.map(({ status }) => status)).toEqual(names.map(() => "rejected"));
		expect(stored()).toBe(50);
	});

	it("refuses to load a state over the memory limit", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		await Promise.all(
			Array.from({ length: 50 }, (_, index) =>
				first.commit([putArtist(`artist-${index}`, "x".repeat(1000))]),
			),
		);
		await expect(open({ limits: { memoryBytes: 20_000 } })).rejects.toThrow(
			/^the state does not fit into the memory limit: the first \d+ resources take \d+ bytes, and the limit is 20000 bytes; raise it \(--memory-limit\)$/,
		);
	});

	it("loads a state that fits into the memory limit although it was larger before", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		for (let index = 0; index < 50; index += 1) {
			await first.commit([putArtist(`artist-${index}`, "x".repeat(1000))]);
		}
		const { resources } = await first.list(allArtists);
		for (const { id, version } of resources) {
			await first.commit([{ op: "delete", id: id ?? idOfArtist("a"), expectedVersion: version }]);
		}
		await first.commit([putArtist("small")]);
		const second = await open({ limits: { memoryBytes: 20_000 } });
		expect(await listArtists(second)).toEqual(["small="]);
	});

	it("resumes watches after versions from before it was opened, with each event once", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		const { version } = await first.commit([putArtist("a"), putArtist("b")]);
		const later = await first.commit([putArtist("a", "changed", version)]);
		await first.commit([{ op: "delete", id: idOfArtist("a"), expectedVersion: later.version }]);
		const { version: last } = await first.commit([putArtist("c")]);
		const second = await open();
		expect((await second.list(allArtists)).version).toBe(last);
		const watch = new ArtistWatch(second, version);
		await first.commit([putArtist("d")]);
		expect([
			...[await watch.next(), await watch.next(), await watch.next(), await watch.next()],
		]).toEqual(["upsert a=changed", "delete a", "upsert c=", "upsert d="]);
		watch.end();
	});

	it("opens at the newest revision if etcd has compacted all before it", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		const { version } = await first.commit([putArtist("a")]);
		const { version: last } = await first.commit([putArtist("b")]);
		await etcd.client().compact(revisionOf(first, last));
		const second = await open();
		expect(await listArtists(second)).toEqual(["a=", "b="]);
		expect(await new ArtistWatch(second, version).failure()).toBeInstanceOf(VersionCompacted);
		const watch = new ArtistWatch(second, last);
		await first.commit([putArtist("c")]);
		expect(await watch.next()).toBe("upsert c=");
		watch.end();
	});

	it("loads what another one has stored, page by page, at the same versions", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		await Promise.all(
			Array.from({ length: 350 }, (_, index) =>
				first.commit([putArtist(`artist-${index}`, "text")]),
			),
		);
		const second = await open();
		const [before, after] = [await first.list(allArtists), await second.list(allArtists)];
		expect(after.resources).toEqual(before.resources);
		expect(after.version).toBe(before.version);
	});

	it("keeps clusters of different prefixes apart", async () => {
		const here = await etcd.cluster().backend();
		const there = await etcd.cluster().backend();
		await here.commit([putArtist("a")]);
		expect(await listArtists(there)).toEqual([]);
		await there.commit([putArtist("a")]);
	});

	it("tells a watch on one server what another one commits", async () => {
		const { backend: open } = etcd.cluster();
		const [writer, reader] = [await open(), await open()];
		const watch = new ArtistWatch(reader);
		await watch.snapshot();
		const { version } = await writer.commit([putArtist("a", "1"), putArtist("b", "1")]);
		await writer.commit([
			{ op: "delete", id: idOfArtist("a"), expectedVersion: version },
			putArtist("b", "2", version),
		]);
		const events = [await watch.next(), await watch.next(), await watch.next(), await watch.next()];
		expect(events).toEqual(["upsert a=1", "upsert b=1", "delete a", "upsert b=2"]);
		watch.end();
	});

	it("reads strongly what another server has acknowledged", async () => {
		const { backend: open } = etcd.cluster();
		const [writer, reader] = [await open(), await open()];
		for (let version = "", round = 0; round < 30; round++) {
			({ version } = await writer.commit([putArtist("a", String(round), version)]));
			const read = await reader.read(idOfArtist("a"), { consistency: "strong" });
			expect(textOf(read)).toBe(String(round));
		}
	});

	it("gives commits that wait at the same time one revision, unless they depend on each other", async () => {
		const backend = await etcd.cluster().backend();
		await backend.commit([putArtist("warm")]);
		// The first two groups leave at once; what is made meanwhile waits together.
		const commits = await Promise.all(
			Array.from({ length: 40 }, (_, index) => backend.commit([putArtist(`a-${index}`)])),
		);
		expect(new Set(commits.map(({ version }) => version)).size).toBeLessThan(10);
		const chain = await Promise.allSettled([
			backend.commit([putArtist("x"), { op: "assert", id: idOfArtist("y"), expectedVersion: "" }]),
			backend.commit([putArtist("y"), { op: "assert", id: idOfArtist("x"), expectedVersion: "" }]),
			backend.commit([putArtist("z")]),
		]);
		expect(chain.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
	});

	it("fits as many commits and mutations into a transaction as etcd takes", async () => {
		const backend = await etcd.cluster().backend();
		await Promise.all(
			Array.from({ length: 1000 }, (_, index) => backend.commit([putArtist(`a-${index}`)])),
		);
		const wide = (from: number) =>
			backend.commit(Array.from({ length: 100 }, (_, index) => putArtist(`b-${from + index}`)));
		await Promise.all([wide(0), wide(100), wide(200), backend.commit([putArtist("c")])]);
		expect((await backend.list(allArtists)).resources).toHaveLength(1301);
	});

	it("decides by the state of etcd if its own is behind", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const writer = await open();
		const behind = await open({ endpoints: [way.url] });
		const { version } = await writer.commit([putArtist("a", "1")]);
		await behind.catchUp(new AbortController().signal);
		way.block();
		const { version: newer } = await writer.commit([putArtist("a", "2", version)]);
		const outcomes = Promise.allSettled([
			behind.commit([putArtist("a", "3", newer)]),
			behind.commit([{ op: "delete", id: idOfArtist("b"), expectedVersion: newer }]),
			behind.commit([
				putArtist("c"),
				{ op: "assert", id: idOfArtist("a"), expectedVersion: version },
			]),
		]);
		await writer.commit([putArtist("b", "1")]);
		way.unblock();
		const [current, missing, stale] = await outcomes;
		expect(current.status).toBe("fulfilled");
		expect(missing).toMatchObject({ status: "rejected", reason: expect.any(CasFailure) });
		expect(stale).toMatchObject({ status: "rejected", reason: expect.any(CasFailure) });
		expect(await listArtists(behind)).toEqual(["a=3", "b=1"]);
	});

	it("learns from the watch the outcome of a commit whose response was lost", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const observer = await open();
		const backend = await open({ endpoints: [way.url] });
		const there = await backend.commit([putArtist("there")]);
		// So the next event is that of the commits whose response is held back.
		await observer.list(allArtists, { consistency: "strong" });
		const seen = new ArtistWatch(observer);
		await seen.snapshot();
		way.block();
		const commits = Promise.allSettled([
			backend.commit([putArtist("a")]),
			backend.commit([putArtist("there", "", there.version), putArtist("b")]),
		]);
		await seen.next();
		way.cut();
		way.mend();
		way.unblock();
		const [first, second] = await commits;
		expect([first.status, second.status]).toEqual(["fulfilled", "fulfilled"]);
		expect(await listArtists(backend)).toEqual(["a=", "b=", "there="]);
		expect(await listArtists(observer)).toEqual(["a=", "b=", "there="]);
		seen.end();
	});

	it("goes on with its watches after a broken connection, without a gap", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const writer = await open();
		const backend = await open({ endpoints: [way.url] });
		const watch = new ArtistWatch(backend);
		await watch.snapshot();
		for (let round = 0; round < 3; round++) {
			way.cut();
			const { version } = await writer.commit([putArtist("a", String(round))]);
			await writer.commit([{ op: "delete", id: idOfArtist("a"), expectedVersion: version }]);
			way.mend();
			expect([await watch.next(), await watch.next()]).toEqual([`upsert a=${round}`, "delete a"]);
		}
		watch.end();
	});

	it("loads again and closes its watches if etcd has compacted the missed revisions", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const writer = await open();
		const { version } = await writer.commit([putArtist("goes"), putArtist("stays")]);
		const backend = await open({ endpoints: [way.url] });
		const watch = new ArtistWatch(backend);
		await watch.snapshot();
		const before = await backend.read(idOfArtist("stays"));
		way.cut();
		await writer.commit([{ op: "delete", id: idOfArtist("goes"), expectedVersion: version }]);
		const comes = await writer.commit([putArtist("comes")]);
		await etcd.client().compact(revisionOf(backend, comes.version));
		way.mend();
		expect(await watch.failure()).toBeInstanceOf(WatchClosed);
		expect(await listArtists(backend)).toEqual(["comes=", "stays="]);
		expect(await backend.read(idOfArtist("stays"))).toBe(before);
		expect(await new ArtistWatch(backend, version).failure()).toBeInstanceOf(VersionCompacted);
		const again = new ArtistWatch(backend);
		expect(await again.snapshot()).toEqual(["upsert comes=", "upsert stays="]);
		await writer.commit([putArtist("more")]);
		expect(await again.next()).toBe("upsert more=");
		again.end();
	});

	it("keeps its watches if etcd was compacted and nothing was missed", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const writer = await open();
		await writer.commit([putArtist("a")]);
		const noticed = Promise.withResolvers<void>();
		const info: LogMethod = (_, message) => {
			if (message.includes("nothing was missed")) {
				noticed.resolve();
			}
		};
		const logger = { ...silentLogger, info };
		const backend = await open({ endpoints: [way.url], logger });
		const watch = new ArtistWatch(backend);
		await watch.snapshot();
		way.cut();
		const client = etcd.client();
		const elsewhere = await etcd.cluster().backend();
		const other = await elsewhere.commit([putArtist("elsewhere")]);
		await client.compact(revisionOf(elsewhere, other.version));
		way.mend();
		await noticed.promise;
		await writer.commit([putArtist("b")]);
		expect(await watch.next()).toBe("upsert b=");
		watch.end();
	});

	it("tells a deletion at the very revision that etcd was compacted at", async () => {
		const { backend: open } = etcd.cluster();
		const way = await etcd.proxy();
		const writer = await open();
		const { version } = await writer.commit([putArtist("a")]);
		const backend = await open({ endpoints: [way.url] });
		way.cut();
		const deletion = await writer.commit([
			{ op: "delete", id: idOfArtist("a"), expectedVersion: version },
		]);
		await etcd.client().compact(revisionOf(backend, deletion.version));
		way.mend();
		await backend.catchUp(new AbortController().signal);
		expect(await listArtists(backend)).toEqual([]);
	});

	it("refuses what is more than a request can hold, and says so", async () => {
		const backend = await etcd.cluster().backend();
		const half = "x".repeat(800 * 1024);
		await expect(backend.commit([putArtist("a", half), putArtist("b", half)])).rejects.toThrow(
			Exhausted,
		);
		await backend.commit([putArtist("a", half)]);
		const limits = { mutations: 200 };
		await expect(createEtcdBackend({ endpoints: [etcd.url], limits })).rejects.toThrow(
			"--max-txn-ops",
		);
	});

	it("lets a commit that etcd refuses fail alone", async () => {
		const backend = await etcd.cluster().backend({
			requestLimits: { maxRequestBytes: 16 * 1024 * 1024 },
			limits: { resourceBytes: 8 * 1024 * 1024 },
		});
		const large = "x".repeat(1700 * 1024);
		await backend.commit([putArtist("warm")]);
		const [a, b, c] = await Promise.allSettled([
			backend.commit([putArtist("a")]),
			backend.commit([putArtist("b", large)]),
			backend.commit([putArtist("c")]),
		]);
		expect([a.status, c.status]).toEqual(["fulfilled", "fulfilled"]);
		expect(b).toMatchObject({ status: "rejected", reason: expect.any(Exhausted) });
		expect(await listArtists(backend)).toEqual(["a=", "c=", "warm="]);
	});

	it("refuses to load what no server has stored, and names the key", async () => {
		const prefix = `/${randomUUID()}`;
		const client = etcd.client();
		const key = new Keys(prefix).resource(artist("a").id);
		const value = { key: Buffer.from(key), value: Buffer.from("nonsense") };
		const request = { success: [{ request: { case: "requestPut" as const, value } }] };
		await client.transaction(create(TxnRequestSchema, request));
		const opening = createEtcdBackend({ endpoints: [etcd.url], prefix });
		await expect(opening).rejects.toThrow(UnrecognizedData);
		await expect(opening).rejects.toThrow("demo.Artist");
	});

	it("opens if a value of others is gone again, and not while it is there", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const backend = await open();
		await backend.commit([putArtist("a")]);
		const client = etcd.client();
		const key = Buffer.from(new Keys(prefix).resource(artist("b").id));
		const put = { key, value: Buffer.from("nonsense") };
		await client.transaction(
			create(TxnRequestSchema, { success: [{ request: { case: "requestPut", value: put } }] }),
		);
		const { version } = await backend.commit([putArtist("c")]);
		await expect(createEtcdBackend({ endpoints: [etcd.url], prefix })).rejects.toThrow(
			UnrecognizedData,
		);
		await client.transaction(
			create(TxnRequestSchema, {
				success: [{ request: { case: "requestDeleteRange", value: { key } } }],
			}),
		);
		await backend.commit([putArtist("d")]);
		const second = await open();
		expect(await listArtists(second)).toEqual(["a=", "c=", "d="]);
		expect(await new ArtistWatch(second, version).failure()).toBeInstanceOf(VersionCompacted);
	});

	it("ignores foreign keys and values under its prefix", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const backend = await open();
		const client = etcd.client();
		const key = Buffer.from(new Keys(prefix).resource(artist("a").id));
		const value = { key, value: Buffer.from("nonsense") };
		const request = { success: [{ request: { case: "requestPut" as const, value } }] };
		await client.transaction(create(TxnRequestSchema, request));
		await backend.commit([putArtist("b")]);
		expect(await listArtists(backend)).toEqual(["b="]);
	});

	it("names the endpoint that does not respond if it can't load", async () => {
		const way = await etcd.proxy();
		way.cut();
		const opening = createEtcdBackend({ endpoints: [way.url], requestTimeoutMs: 300 });
		await expect(opening).rejects.toThrow(StorageUnavailable);
		await expect(opening).rejects.toThrow(/load/);
	});
});
