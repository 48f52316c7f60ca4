import { setImmediate, setTimeout } from "node:timers/promises";
import type { LeaseHold } from "@plinth/runtime";
import { Fenced } from "@plinth/storage";
import { listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { Keys } from "../keys.ts";
import { useEtcd } from "../use-etcd.fixture.ts";

const never = new AbortController().signal;

describeWith("etcd")("leases from etcd", () => {
	const etcd = useEtcd();

	it("are held by one at a time, across servers", async () => {
		const { leases: join } = etcd.cluster();
		const servers = [join(), join(), join()];
		let holders = 0;
		let most = 0;
		await Promise.all(
			servers.map(async (leases) => {
				for (let round = 0; round < 4; round++) {
					const hold = await leases.acquire("singletons", never);
					holders += 1;
					most = Math.max(most, holders);
					await setImmediate();
					expect(hold.signal.aborted).toBe(false);
					holders -= 1;
					await hold.release();
				}
			}),
		);
		expect(most).toBe(1);
	});

	it("are granted under different names at the same time", async () => {
		const leases = etcd.cluster().leases();
		const holds = await Promise.all(["a", "b"].map((name) => leases.acquire(name, never)));
		expect(holds.map(({ signal }) => signal.aborted)).toEqual([false, false]);
	});

	it.concurrent("tell other servers which are held, also after the connection was lost", async ({
		onTestFinished,
	}) => {
		const { leases: join } = etcd.cluster(onTestFinished);
		const way = await etcd.proxy(onTestFinished);
		const holder = join();
		const [a] = await Promise.all(["x-a", "y-b"].map((name) => holder.acquire(name, never)));
		const over = new AbortController();
		const changes = join(way.url).held("x-", over.signal)[Symbol.asyncIterator]();
		/** Waits for a change after which they are these. */
		const untilHeld = async (...names: readonly string[]) => {
			for (;;) {
				const { value } = await changes.next();
				if ([...value].join() === names.join()) {
					return;
				}
			}
		};
		await untilHeld("x-a");
		await holder.acquire("x-c", never);
		await untilHeld("x-a", "x-c");
		way.cut();
		await a?.release();
		way.mend();
		await untilHeld("x-c");
		over.abort(new Error("seen enough"));
		await expect(changes.next()).rejects.toThrow("seen enough");
	});

	it.concurrent("outlive their time while they are renewed", async ({ onTestFinished }) => {
		const { leases: join } = etcd.cluster(onTestFinished);
		const hold = await join().acquire("singletons", never);
		const waiting = new AbortController();
		const other = join().acquire("singletons", waiting.signal);
		await setTimeout(4500);
		expect(hold.signal.aborted).toBe(false);
		waiting.abort(new Error("long enough"));
		await expect(other).rejects.toThrow("long enough");
	});

	it.concurrent("move to another server within their time when the holder loses etcd, who notices before", async ({
		onTestFinished,
	}) => {
		const { leases: join } = etcd.cluster(onTestFinished);
		const way = await etcd.proxy(onTestFinished);
		const hold = await join(way.url).acquire("singletons", never);
		const waiting = join().acquire("singletons", never);
		way.cut();
		const order: string[] = [];
		hold.signal.addEventListener("abort", () => order.push("lost"));
		const next: LeaseHold = await waiting;
		order.push("granted");
		expect(order).toEqual(["lost", "granted"]);
		expect(next.fence.token).not.toBe(hold.fence.token);
		way.mend();
	});

	it("end if the key is deleted at etcd", async () => {
		const { leases: join, prefix } = etcd.cluster();
		const hold = await join().acquire("singletons", never);
		const client = etcd.client();
		const { kvs } = await client.range({ key: new Keys(prefix).lease("singletons") });
		await client.revokeLease(kvs[0]?.lease ?? 0n);
		// It may have ended before the response to the revocation arrived.
		await expect.poll(() => hold.signal.aborted, { timeout: 300_000 }).toBe(true);
	});

	it("are not held by one who gave up, whenever that was", async () => {
		const { leases: join } = etcd.cluster();
		const [one, other] = [join(), join()];
		for (let turns = 0; turns < 20; turns++) {
			const impatient = new AbortController();
			const asked = one.acquire("singletons", impatient.signal).catch((error: unknown) => error);
			for (let turn = 0; turn < turns * 3; turn++) {
				await setImmediate();
			}
			impatient.abort(new Error("too long"));
			const given = await asked;
			if (given instanceof Error) {
				expect(given.message).toBe("too long");
			} else {
				await (given as LeaseHold).release();
			}
			await (await other.acquire("singletons", never)).release();
		}
	});

	it("are given back when the leases are closed", async () => {
		const { leases: join } = etcd.cluster();
		const leaving = join();
		const hold = await leaving.acquire("singletons", never);
		const next = join().acquire("singletons", never);
		await leaving.close();
		expect(hold.signal.aborted).toBe(true);
		expect((await next).signal.aborted).toBe(false);
	});

	it.concurrent("refuse late writes of a former holder that has not noticed its loss", async ({
		onTestFinished,
	}) => {
		const { leases: join, backend } = etcd.cluster(onTestFinished);
		const way = await etcd.proxy(onTestFinished);
		const storage = await backend();
		const former = await join(way.url).acquire("singletons", never);
		await storage.commit([putArtist("before")], { fence: former.fence });
		way.cut();
		const next = await join().acquire("singletons", never);
		await expect(storage.commit([putArtist("late")], { fence: former.fence })).rejects.toThrow(
			Fenced,
		);
		await storage.commit([putArtist("after")], { fence: next.fence });
		expect(await listArtists(storage)).toEqual(["after=", "before="]);
	});
});
