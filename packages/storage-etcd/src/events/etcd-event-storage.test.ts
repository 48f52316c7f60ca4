import { randomUUID } from "node:crypto";
import { systemClock } from "@plinth/runtime";
import { type EventRow, type EventStorage, StorageUnavailable } from "@plinth/storage";
import { describeEventConformance } from "@plinth/storage/conformance";
import { ArtistWatch, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import type { EtcdClient } from "../client/etcd-client.ts";
import { createEtcdBackend, type EtcdBackend } from "../etcd-backend.ts";
import { Keys } from "../keys.ts";
import { useEtcd } from "../use-etcd.fixture.ts";
import { EtcdEventStorage } from "./etcd-event-storage.ts";

const hour = { ttlMs: 3_600_000 };

function row(key: string, body = "body"): EventRow {
	return { key, body: Buffer.from(body) };
}

/** Follows until the test has finished. */
function followed(events: EventStorage): AsyncIterator<readonly EventRow[]> {
	const end = new AbortController();
	onTestFinished(() => end.abort());
	return events.follow(end.signal)[Symbol.asyncIterator]();
}

/** The keys of the next rows; those that are removed with a minus sign. */
async function next(rows: AsyncIterator<readonly EventRow[]>): Promise<readonly string[]> {
	const { value } = await rows.next();
	return value.map(({ key, body }: EventRow) => (body === undefined ? `-${key}` : key));
}

describeWith("etcd")("the events of an etcd backend", () => {
	const etcd = useEtcd();

	describeEventConformance(
		"with two servers, it",
		async () => {
			const prefix = `/${randomUUID()}`;
			const backends: EtcdBackend[] = [];
			const open = async () => {
				const backend = await createEtcdBackend({ endpoints: [etcd.url], prefix });
				backends.push(backend);
				return backend.events;
			};
			return {
				storage: await open(),
				other: await open(),
				reopen: async () => {
					await backends[0]?.close();
					return open();
				},
				dispose: async () => {
					await Promise.all(backends.map((backend) => backend.close()));
				},
			};
		},
		{ describe, it: it.concurrent },
	);

	it("are not seen by watches of resources, and change no version", async () => {
		const backend = await etcd.cluster().backend();
		const first = await backend.commit([putArtist("a", "one")]);
		const watch = new ArtistWatch(backend, first.version);
		onTestFinished(() => watch.end());
		const before = await backend.catchUp(new AbortController().signal);
		await backend.events.write([row("a"), row("b")], hour);
		await backend.events.write([{ key: "a", body: undefined }], hour);
		expect(await backend.catchUp(new AbortController().signal)).toBe(before);
		await Promise.all([
			backend.commit([putArtist("b", "two")]),
			backend.events.write([row("c")], hour),
		]);
		expect(await watch.next()).toBe("upsert b=two");
		await backend.events.write([row("d")], hour);
		const last = await backend.commit([putArtist("c", "three")]);
		expect(await watch.next()).toBe("upsert c=three");
		expect(await backend.catchUp(new AbortController().signal)).toBe(last.version);
	});

	it("come together at first, also if they do not fit into one response", async () => {
		const { events } = await etcd.cluster().backend();
		const keys = Array.from({ length: 40 }, (_, index) => `row-${index + 10}`);
		for (let begin = 0; begin < keys.length; begin += 4) {
			const some = keys.slice(begin, begin + 4);
			await events.write(
				some.map((key) => row(key, "x".repeat(128 * 1024))),
				hour,
			);
		}
		expect(await next(followed(events))).toEqual(keys);
	});

	it("have what was written last, if a write names a key twice", async () => {
		const { events } = await etcd.cluster().backend();
		await events.write(
			[row("a"), { key: "a", body: undefined }, row("b", "1"), row("b", "2")],
			hour,
		);
		const { value } = await followed(events).next();
		expect(value).toEqual([{ key: "b", body: Uint8Array.from(Buffer.from("2")) }]);
	});

	it("end as unavailable when the storage is closed, and writes are refused", async () => {
		const backend = await etcd.cluster().backend();
		const rows = followed(backend.events);
		expect(await next(rows)).toEqual([]);
		const ended = expect(rows.next()).rejects.toThrow(
			new StorageUnavailable("the storage is closed"),
		);
		await backend.close();
		await ended;
		await expect(backend.events.write([row("a")], hour)).rejects.toThrow(StorageUnavailable);
		await expect(followed(backend.events).next()).rejects.toThrow(StorageUnavailable);
	});

	it("are unavailable while etcd is", async () => {
		const proxy = await etcd.proxy();
		const backend = await etcd
			.cluster()
			.backend({ endpoints: [proxy.url], requestTimeoutMs: 1000 });
		const rows = followed(backend.events);
		expect(await next(rows)).toEqual([]);
		const following = expect(rows.next()).rejects.toThrow(StorageUnavailable);
		proxy.block();
		await expect(backend.events.write([row("a")], hour)).rejects.toThrow(StorageUnavailable);
		await following;
	});
});

describeWith("etcd")("rows of events in etcd", () => {
	const etcd = useEtcd();

	function opened(leastPeriodMs?: number) {
		const client: EtcdClient = etcd.client();
		const lost = new AbortController();
		const keys = new Keys(`/${randomUUID()}`);
		const events = new EtcdEventStorage({
			...{ client, keys, clock: systemClock, historyLost: lost.signal },
			...(leastPeriodMs !== undefined && { leastPeriodMs }),
		});
		return { client, keys, events, lost };
	}

	it("are removed by etcd after their time to live, which followers are told", async () => {
		const { events } = opened(100);
		await events.write([row("kept")], hour);
		await events.write([row("old")], { ttlMs: 500 });
		const rows = followed(events);
		expect(await next(rows)).toEqual(["kept", "old"]);
		expect(await next(rows)).toEqual(["-old"]);
		expect(await next(followed(events))).toEqual(["kept"]);
	});

	it("live longer if they are written again", async () => {
		const { events } = opened(100);
		await events.write([row("old"), row("renewed")], { ttlMs: 500 });
		await events.write([row("renewed")], hour);
		const rows = followed(events);
		expect(await next(rows)).toEqual(["old", "renewed"]);
		expect(await next(rows)).toEqual(["-old"]);
		expect(await next(followed(events))).toEqual(["renewed"]);
	});

	it("get another lease if theirs is gone", async () => {
		const { client, keys, events } = opened();
		await events.write([row("a"), row("b")], hour);
		const leases = async () => (await client.range(keys.events)).kvs.map(({ lease }) => lease);
		const [former, same] = await leases();
		expect(former).toBeGreaterThan(0n);
		expect(same).toBe(former);
		await client.revokeLease(former ?? 0n);
		await events.write([row("c")], hour);
		expect(await leases()).toEqual([expect.not.toSatisfy((lease) => lease === former)]);
		expect(await next(followed(events))).toEqual(["c"]);
	});

	it("are refused once history is lost, which ends what follows", async () => {
		const { events, lost } = opened();
		const rows = followed(events);
		expect(await next(rows)).toEqual([]);
		const failure = new StorageUnavailable("etcd has lost history");
		const ended = expect(rows.next()).rejects.toBe(failure);
		lost.abort(failure);
		await ended;
		await expect(events.write([row("a")], hour)).rejects.toBe(failure);
		await expect(followed(events).next()).rejects.toBe(failure);
	});
});
