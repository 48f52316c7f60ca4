import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { RangeResponseSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import type { EtcdClient } from "./etcd-client.ts";
import { EtcdError } from "./etcd-error.ts";
import { rangePages } from "./range-pages.ts";

const signal = new AbortController().signal;
/** The first byte of a key is its group. */
const all = {
	key: Buffer.of(0),
	rangeEnd: Buffer.of(255),
	groupEnd: (key: Uint8Array) => Buffer.of((key[0] ?? 0) + 1),
};
const tooLate = new EtcdError("unknown", "no response", Code.DeadlineExceeded);
const tooLarge = new EtcdError(
	"refused",
	"etcd: grpc: trying to send message larger than max",
	Code.ResourceExhausted,
);

/** An etcd with values of these sizes, in groups, which fails to send more than `most` bytes at once. */
function etcdOf(
	groups: readonly (readonly number[])[],
	most = Number.POSITIVE_INFINITY,
	failure = tooLate,
) {
	const values = groups.flatMap((sizes, group) =>
		sizes.map((size, index) => {
			const key = Buffer.alloc(5, group + 1);
			key.writeUInt32BE(index, 1);
			return { key, value: new Uint8Array(size) };
		}),
	);
	/** Per request: how many keys it asked for, and how many bytes they have. */
	const requests: { readonly limit: number; readonly bytes: number }[] = [];
	const range: EtcdClient["range"] = async ({ key, rangeEnd, limit = 0n }) => {
		const inRange = values.filter(
			(value) =>
				Buffer.compare(value.key, key ?? Buffer.of()) >= 0 &&
				Buffer.compare(value.key, rangeEnd ?? Buffer.of()) < 0,
		);
		const kvs = inRange.slice(0, Number(limit));
		const bytes = kvs.reduce((sum, { value }) => sum + value.byteLength, 0);
		requests.push({ limit: Number(limit), bytes });
		if (bytes > most) {
			throw failure;
		}
		return create(RangeResponseSchema, { kvs, more: kvs.length < inRange.length });
	};
	return { range, requests };
}

async function sizesOf(client: Pick<EtcdClient, "range">): Promise<readonly number[]> {
	const sizes: number[] = [];
	for await (const page of rangePages(client, all, 1n, signal)) {
		sizes.push(...page.map(({ value }) => value.byteLength));
	}
	return sizes;
}

/** Types of small resources, then one of large ones, then one of small ones. */
const mixed = [[], [100], Array(40).fill(100), Array(200).fill(100_000), Array(300).fill(100)];

describe("the pages of a range", () => {
	it("have at most twice as many keys as the one before, and few of large values", async () => {
		const etcd = etcdOf(mixed);
		expect(await sizesOf(etcd)).toEqual(mixed.flat());
		for (const [index, { limit }] of etcd.requests.entries()) {
			expect(limit).toBeLessThanOrEqual(2 * (etcd.requests[index - 1]?.limit ?? 1));
		}
		expect(Math.max(...etcd.requests.map(({ bytes }) => bytes))).toBeLessThan(6_400_000);
	});

	it("have many keys only within a group", async () => {
		const groups = [Array(6_000).fill(1), Array(600).fill(1_000)];
		const etcd = etcdOf(groups);
		expect(await sizesOf(etcd)).toEqual(groups.flat());
		expect(etcd.requests.map(({ limit }) => limit)).toEqual([
			...[2, 4, 8, 16, 32, 64, 128],
			...[256, 512, 1024, 2048, 4096],
			...[128, 256, 512, 128],
		]);
	});

	it.each([tooLate, tooLarge])("are read with fewer keys after: $message", async (failure) => {
		const etcd = etcdOf(mixed, 150_000, failure);
		expect(await sizesOf(etcd)).toEqual(mixed.flat());
	});

	it("become large again after an etcd that did not respond in time for a while", async () => {
		const sizes = Array(6_000).fill(10_000);
		const etcd = etcdOf([sizes]);
		let calls = 0;
		const range: EtcdClient["range"] = async (request) => {
			calls += 1;
			if (calls === 5 || calls === 6) {
				throw tooLate;
			}
			return etcd.range(request);
		};
		expect(await sizesOf({ range })).toEqual(sizes);
		expect(Math.max(...etcd.requests.map(({ bytes }) => bytes))).toBeGreaterThan(2_000_000);
		expect(etcd.requests.length).toBeLessThan(90);
	});

	it("fail if one value can't be read, and at once after other errors", async () => {
		const etcd = etcdOf([[100, 100, 3_000]], 2_000);
		await expect(sizesOf(etcd)).rejects.toThrow(tooLate);
		expect(etcd.requests.map(({ limit }) => limit)).toEqual([2, 4, 1]);
		const other = new EtcdError("unknown", "the stream was closed", Code.Unavailable);
		const broken = etcdOf([[100, 100, 3_000]], 2_000, other);
		await expect(sizesOf(broken)).rejects.toThrow(other);
		expect(broken.requests).toHaveLength(2);
	});
});
