import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { type ServerRecord, StorageUnavailable } from "@plinth/storage";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished, vi } from "vitest";
import { operation } from "../client/conditions.ts";
import { EtcdClient } from "../client/etcd-client.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "../keys.ts";
import { useEtcd } from "../use-etcd.fixture.ts";
import { EtcdServerDirectory } from "./etcd-server-directory.ts";

const { signal } = new AbortController();
const patiently = { timeout: 300_000, interval: 20 };

function record(name: string): ServerRecord {
	return {
		...{ id: randomUUID(), name, address: "http://10.0.0.1:7575" },
		...{ startedAtMs: 1_000, version: "1.0.0", secret: randomUUID() },
	};
}

describeWith("etcd")("the servers of a cluster in etcd", () => {
	const etcd = useEtcd();

	/** The directory of one server. */
	function opened(prefix: string, url = etcd.url) {
		const client = new EtcdClient({ endpoints: [url] });
		onTestFinished(() => client.close());
		const lost = new AbortController();
		const directory = new EtcdServerDirectory({
			...{ client, keys: new Keys(prefix), ttlSeconds: 2 },
			...{ ...systemRuntime, logger: silentLogger, historyLost: lost.signal },
		});
		onTestFinished(() => directory.leave());
		return { directory, lost };
	}

	async function names(directory: EtcdServerDirectory): Promise<readonly string[]> {
		return (await directory.list(signal)).map(({ name }) => name).sort();
	}

	it("are those that have joined and not left", async () => {
		const prefix = `/${randomUUID()}`;
		const [{ directory: one }, { directory: other }] = [opened(prefix), opened(prefix)];
		expect(await names(one)).toEqual([]);
		const own = record("one");
		one.join(own);
		await expect.poll(() => other.list(signal), patiently).toEqual([own]);
		other.join(record("other"));
		await expect.poll(() => names(one), patiently).toEqual(["one", "other"]);
		await one.leave();
		expect(await names(other)).toEqual(["other"]);
		expect(await names(opened(`/${randomUUID()}`).directory)).toEqual([]);
	});

	it("lack one that is cut off when its lease has ended, until it is back", async () => {
		const prefix = `/${randomUUID()}`;
		const way = await etcd.proxy();
		const [{ directory: one }, { directory: other }] = [opened(prefix, way.url), opened(prefix)];
		one.join(record("one"));
		await expect.poll(() => names(other), patiently).toEqual(["one"]);
		way.cut();
		await expect.poll(() => names(other), patiently).toEqual([]);
		way.mend();
		await expect.poll(() => names(other), patiently).toEqual(["one"]);
	});

	it("record themselves again if their lease is revoked", async () => {
		const prefix = `/${randomUUID()}`;
		const { directory } = opened(prefix);
		directory.join(record("one"));
		await expect.poll(() => names(directory), patiently).toEqual(["one"]);
		const client = etcd.client();
		const { kvs } = await client.range(new Keys(prefix).servers);
		await client.revokeLease(kvs[0]?.lease ?? 0n);
		const lease = async () => (await client.range(new Keys(prefix).servers)).kvs[0]?.lease;
		await expect.poll(lease, patiently).toBeGreaterThan(0n);
		expect(await lease()).not.toBe(kvs[0]?.lease);
	});

	it("are listed without records that this version can't read", async () => {
		const prefix = `/${randomUUID()}`;
		const { directory } = opened(prefix);
		directory.join(record("one"));
		await expect.poll(() => names(directory), patiently).toEqual(["one"]);
		const cluster = etcd.cluster();
		const backend = await cluster.backend();
		expect(await backend.servers.list(signal)).toEqual([]);
		await etcdPut(new Keys(prefix).server("x"), "no JSON");
		await etcdPut(new Keys(prefix).server("y"), "null");
		await etcdPut(new Keys(prefix).server("z"), JSON.stringify({ ...record("new"), more: 1 }));
		expect(await names(directory)).toEqual(["new", "one"]);
	});

	it("can't be listed once history is lost, or while etcd does not respond", async () => {
		const way = await etcd.proxy();
		const { directory, lost } = opened(`/${randomUUID()}`, way.url);
		way.cut();
		const within = new AbortController();
		const listing = directory.list(within.signal);
		within.abort(new Error("too long"));
		await expect(listing).rejects.toThrow("too long");
		const failure = new StorageUnavailable("etcd has lost history");
		lost.abort(failure);
		await expect(directory.list(signal)).rejects.toBe(failure);
	});

	it("are read from etcd by few requests, which callers that leave do not end", async () => {
		const warn = vi.fn();
		const client = new EtcdClient({
			...{ endpoints: [etcd.url, etcd.url], logger: { ...silentLogger, warn } },
		});
		onTestFinished(() => client.close());
		const range = vi.spyOn(client, "range");
		const directory = new EtcdServerDirectory({
			...{ client, keys: new Keys(`/${randomUUID()}`), historyLost: signal },
			...{ ...systemRuntime, logger: silentLogger },
		});
		expect(await directory.list(signal)).toEqual([]);
		range.mockClear();
		const calls = Array.from({ length: 20 }, async () => {
			const call = new AbortController();
			const listing = directory.list(call.signal);
			call.abort(new Error("gone"));
			await expect(listing).rejects.toThrow("gone");
		});
		const staying = Array.from({ length: 20 }, () => directory.list(signal));
		await Promise.all([...calls, ...staying]);
		expect(warn).not.toHaveBeenCalled();
		expect(range.mock.calls.length).toBeLessThanOrEqual(2);
	});

	it("end with their storage, which removes the record", async () => {
		const cluster = etcd.cluster();
		const [backend, other] = [await cluster.backend(), await cluster.backend()];
		backend.servers.join(record("one"));
		await expect.poll(() => other.servers.list(signal), patiently).toHaveLength(1);
		await backend.close();
		expect(await other.servers.list(signal)).toEqual([]);
	});

	async function etcdPut(key: Uint8Array, text: string): Promise<void> {
		const success = [operation("requestPut", { key, value: Buffer.from(text) })];
		await etcd.client().transaction(create(TxnRequestSchema, { success }));
	}
});
