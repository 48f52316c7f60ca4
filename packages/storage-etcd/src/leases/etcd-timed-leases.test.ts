import { silentLogger, systemRuntime, TooManyLeases } from "@plinth/runtime";
import { Fenced, StorageUnavailable } from "@plinth/storage";
import { listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { Keys } from "../keys.ts";
import { useEtcd } from "../use-etcd.fixture.ts";
import { EtcdTimedLeases } from "./etcd-timed-leases.ts";
import { LeaseKeys } from "./lease-keys.ts";

const forever = new AbortController().signal;
const impatient = AbortSignal.abort(new Error("not now"));

describeWith("etcd")("leases from etcd for a time", () => {
	const etcd = useEtcd();

	it("are granted, renewed and released by any server", async () => {
		const { leases: join } = etcd.cluster();
		const [one, other] = [join().timed, join().timed];
		const fence = await one.grant("a", "first", impatient);
		expect(fence).toMatchObject({ lease: "a" });
		expect(await other.grant("a", "second", impatient)).toBeUndefined();
		expect(await other.renew("a", "first")).toBeDefined();
		expect(await other.renew("a", "second")).toBeUndefined();
		const second = other.grant("a", "second", forever);
		await other.release("a", "second");
		await other.release("a", "first");
		expect(await second).not.toEqual(fence);
		expect(await one.renew("a", "first")).toBeUndefined();
	});

	it("are granted once to requests that are repeated at several servers", async () => {
		const { leases: join } = etcd.cluster();
		const servers = [join(), join(), join()];
		const fences = await Promise.all(
			servers.map(({ timed }) => timed.grant("a", "first", forever)),
		);
		expect(new Set(fences.map((fence) => fence?.token)).size).toBe(1);
	});

	it.concurrent("end when they are not renewed, and their fences with them", async ({
		onTestFinished,
	}) => {
		const { leases: join, backend } = etcd.cluster(onTestFinished);
		const storage = await backend();
		const { timed } = join();
		const former = await timed.grant("a", "first", impatient);
		const next = await timed.grant("a", "second", forever);
		if (former === undefined || next === undefined) {
			throw new Error("not granted");
		}
		expect(await timed.renew("a", "first")).toBeUndefined();
		await expect(storage.commit([putArtist("late")], { fence: former })).rejects.toThrow(Fenced);
		await storage.commit([putArtist("after")], { fence: next });
		expect(await listArtists(storage)).toEqual(["after="]);
	});

	it("are limited, and can be renewed at the limit", async () => {
		const { prefix, leases: join } = etcd.cluster();
		const ttlSeconds = 600;
		const keys = new LeaseKeys({
			...{ client: etcd.client(), keys: new Keys(prefix), logger: silentLogger, ttlSeconds },
			...systemRuntime,
		});
		const end = new AbortController().signal;
		const ttlMs = ttlSeconds * 1000;
		const leases = new EtcdTimedLeases({ keys, ttlMs, logger: silentLogger, end, limit: 2 });
		const server = await join().acquire("servers/a", forever);
		await leases.grant("clients/a", "first", impatient);
		await leases.grant("clients/b", "first", impatient);
		await expect(leases.grant("clients/c", "first", forever)).rejects.toThrow(TooManyLeases);
		expect(await leases.grant("clients/a", "first", impatient)).toBeDefined();
		expect(await leases.renew("clients/b", "first")).toBeDefined();
		expect(await leases.grant("clients/b", "second", impatient)).toBeUndefined();
		await leases.release("clients/a", "first");
		expect(await leases.grant("clients/c", "first", impatient)).toBeDefined();
		await server.release();
	});

	it("exclude servers that hold leases of the same names", async () => {
		const { leases: join } = etcd.cluster();
		const [one, other] = [join(), join()];
		const hold = await one.acquire("a", forever);
		expect(await other.timed.grant("a", "first", impatient)).toBeUndefined();
		await hold.release();
		await other.timed.grant("a", "first", forever);
		const second = one.acquire("a", forever);
		await other.timed.release("a", "first");
		await second;
	});

	it("say that etcd can't be reached", async () => {
		const { leases: join } = etcd.cluster();
		const way = await etcd.proxy();
		const { timed } = join(way.url);
		await timed.grant("a", "first", impatient);
		way.cut();
		await expect(timed.renew("a", "first")).rejects.toThrow(StorageUnavailable);
		way.mend();
	});

	it("are refused when they are closed", async () => {
		const { leases: join } = etcd.cluster();
		const leases = join();
		await leases.timed.grant("a", "first", impatient);
		const second = leases.timed.grant("a", "second", forever);
		await leases.close();
		await expect(second).rejects.toThrow("closed");
		await expect(leases.timed.renew("a", "first")).rejects.toThrow("closed");
	});
});
