import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { RangeResponseSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { keyText } from "../keys.ts";
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

/** What all values are views of. */
const zeros = new Uint8Array(1 << 20);

/** An etcd with values of these sizes, in groups, which fails to send more than `most` bytes at once. */
function etcdOf(
	groups: readonly (readonly number[])[],
	most = Number.POSITIVE_INFINITY,
	failure = tooLate,
) {
	return etcdWith(
		groups.flatMap((sizes, group) =>
			sizes.map((size, index) => {
				const key = Buffer.alloc(5, group + 1);
				key.writeUInt32BE(index, 1);
				return { key, value: zeros.subarray(0, size) };
			}),
		),
		most,
		failure,
	);
}

/** An etcd with these values, in the order of their keys. */
function etcdWith(
	values: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[],
	most = Number.POSITIVE_INFINITY,
	failure = tooLate,
) {
	/** How many keys are before this one. */
	const before = (key: Uint8Array) => {
		let [low, high] = [0, values.length];
		while (low < high) {
			const middle = (low + high) >>> 1;
			const isBefore = Buffer.compare(values[middle]?.key ?? key, key) < 0;
			[low, high] = isBefore ? [middle + 1, high] : [low, middle];
		}
		return low;
	};
	/** Per request: how many keys it asked for, how many keys its range has, and how many bytes the response. */
	const requests: { readonly limit: number; readonly count: number; readonly bytes: number }[] = [];
	const range: EtcdClient["range"] = async ({ key, rangeEnd, limit = 0n }) => {
		const begin = before(key ?? Buffer.of());
		const count = before(rangeEnd ?? Buffer.of()) - begin;
		const kvs = values.slice(begin, begin + Math.min(count, Number(limit)));
		const bytes = kvs.reduce((sum, { value }) => sum + value.byteLength, 0);
		requests.push({ limit: Number(limit), count, bytes });
		if (bytes > most) {
			throw failure;
		}
		const more = kvs.length < count;
		return create(RangeResponseSchema, { kvs: [...kvs], more, count: BigInt(count) });
	};
	return { range, requests };
}

/** Names that are spread evenly, each another one. */
function hash(index: number): string {
	return (Math.imul(index, 0x9e3779b1) >>> 0).toString(16).padStart(8, "0");
}

async function sizesOf(client: Pick<EtcdClient, "range">): Promise<readonly number[]> {
	const sizes: number[] = [];
	for await (const page of rangePages(client, all, 1n, signal)) {
		sizes.push(...page.map(({ value }) => value.byteLength));
	}
	return sizes;
}

/** Reads values of these names, in order, as one group. Expects each of them once, and returns the requests. */
async function readGroup(names: readonly string[], sizeOf: (index: number) => number) {
	const etcd = etcdWith(
		names.map((name, index) => ({
			key: Buffer.from(name),
			value: zeros.subarray(0, sizeOf(index)),
		})),
	);
	const read: string[] = [];
	const group = { ...all, groupEnd: () => Buffer.from("group0") };
	for await (const page of rangePages(etcd, group, 1n, signal)) {
		read.push(...page.map(({ key }) => keyText(key)));
	}
	expect(read.join("\n") === names.join("\n")).toBe(true);
	return etcd.requests;
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
			...[256, ...Array(11).fill(512)],
			...[128, 256, 512, 128],
		]);
	});

	it("are limited in bytes, whatever values follow those of a group", async () => {
		const sizes = [...Array(2_046).fill(100), ...Array(1_500).fill(1 << 20)];
		const etcd = etcdOf([sizes]);
		expect(await sizesOf(etcd)).toEqual(sizes);
		expect(Math.max(...etcd.requests.map(({ bytes }) => bytes))).toBeLessThanOrEqual(512 << 20);
	});

	it.each<[string, (index: number) => string, mostVisits?: number]>([
		["consecutive numbers", (index) => `default/artist-${String(index).padStart(6, "0")}`],
		["numbers of any length", (index) => `default/artist-${index}`],
		["hashes", (index) => `default/${hash(index)}`],
		["names in namespaces of any size", (index) => `${hash(index % 99)}/artist-${index}`],
		// Parts do not help here: without them, 66 visits.
		["names that begin with others", (index) => "a".repeat(index % 250) + hash(index), 60],
	])("of a large group are few, and visit few keys: %s", async (_, nameOf, mostVisits = 24) => {
		const names = Array.from({ length: 60_000 }, (_, index) => `group/${nameOf(index)}`).sort();
		const requests = await readGroup(names, () => 100);
		const visits = requests.reduce((sum, { count }) => sum + count, 0);
		expect(visits / names.length).toBeLessThan(mostVisits);
		expect(requests.length).toBeLessThan(2 * (names.length / 512));
	});

	it("of a large group are few, although large values follow small ones whose names begin with many of the same bytes", async () => {
		const [small, large] = [600, 12];
		const indexes = Array.from({ length: 40 * (small + large) }, (_, index) => index);
		const isSmall = (index: number) => index % (small + large) < small;
		const sizeOf = (index: number) => (isSmall(index) ? 100 : 1 << 20);
		const digits = (index: number) => String(index).padStart(6, "0");
		const names = indexes.map((index) => {
			const cycle = digits(Math.floor(index / (small + large)));
			return `group/${cycle}-${isSmall(index) ? "a".repeat(50) : "b"}${digits(index)}`;
		});
		const numbers = indexes.map((index) => `group/${digits(index)}`);
		const requests = await readGroup(names, sizeOf);
		expect(requests.length).toBeLessThan(2 * (await readGroup(numbers, sizeOf)).length);
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
