import { decodeShared, idOf, newUlid, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { decorateBackend, Exhausted, type Mutation, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import type { ReportImport } from "../peering.ts";
import { Record } from "../records/peering-records.ts";
import { Good, good, goodId } from "../simulation/goods.fixture.ts";
import { TestNetwork } from "../two-clusters.fixture.ts";
import { Import, Peering } from "../types.ts";

const patiently = { timeout: 300_000, interval: 20 };

/** The records of peerings that a commit puts. */
function recordsOf(mutations: readonly Mutation[]) {
	return mutations.flatMap((each) =>
		each.op === "put" && each.resource.id?.type?.kind === Record.type.kind
			? [decodeShared(Record, each.resource).data.record]
			: [],
	);
}

/** A storage without room for some records. */
function withoutRoomFor(isRefused: (record: ReturnType<typeof recordsOf>[number]) => boolean) {
	const refused = { times: 0 };
	const decorate = (backend: StorageBackend) =>
		decorateBackend(backend, {
			async commit(mutations, options) {
				if (recordsOf(mutations).some(isRefused)) {
					refused.times += 1;
					throw new Exhausted("the storage is full");
				}
				return backend.commit(mutations, options);
			},
		});
	return { decorate, refused };
}

/** Two clusters: the east can import what the west exports under two names. */
async function start(decorate: (backend: StorageBackend) => StorageBackend, report?: ReportImport) {
	const network = new TestNetwork();
	const west = await network.cluster("west");
	const east = await network.cluster("east", { decorate, ...(report && { report }) });
	await network.peer(east, west);
	await west.export("goods", "east");
	await west.export("others", "east");
	await west.client.write({ resource: good("ale", "") });
	return { west, east };
}

describe("an import whose record finds no room", { timeout: 300_000 }, () => {
	it("holds up no other one, says why, and is started when there is room", async () => {
		let isFull = true;
		const { decorate, refused } = withoutRoomFor(
			(record) => isFull && record.case === "import" && record.value.import === "aaa",
		);
		const reported = new Map<string, string>();
		const { west, east } = await start(decorate, async ({ record, state }) => {
			reported.set(record.import, state);
		});
		await east.import({ peer: "west", export: "goods", partition: "aaa" });
		await east.import({ peer: "west", export: "goods", partition: "bbb" });
		east.run();
		await expect.poll(() => east.goods("bbb"), patiently).toEqual(["ale"]);
		await expect.poll(() => refused.times, patiently).toBeGreaterThan(1);
		await west.client.delete({ id: goodId("ale") });
		await expect.poll(() => east.goods("bbb"), patiently).toEqual([]);
		expect(await east.report("aaa")).toMatchObject({
			...{ name: "aaa", export: "goods", state: "Full", message: "the storage is full" },
		});
		expect(await east.report("bbb")).toMatchObject({ snapshots: 1n, resumptions: 0n });
		expect(reported.get("aaa")).toBe("Full");
		isFull = false;
		await west.client.write({ resource: good("beer", "") });
		await expect.poll(() => east.goods("aaa"), patiently).toEqual(["beer"]);
		await expect.poll(() => reported.get("aaa"), patiently).toBe("Streaming");
	});

	it("keeps its copies when another Export can't be recorded, and holds up no other one", async () => {
		const { decorate, refused } = withoutRoomFor(
			(record) => record.case === "import" && record.value.export === "others",
		);
		const { west, east } = await start(decorate);
		await east.import({ peer: "west", export: "goods", partition: "aaa" });
		await east.import({ peer: "west", export: "goods", partition: "bbb" });
		east.run();
		await expect.poll(() => east.goods("aaa"), patiently).toEqual(["ale"]);
		await expect.poll(() => east.goods("bbb"), patiently).toEqual(["ale"]);
		await east.import({ peer: "west", export: "others", partition: "aaa" });
		await expect.poll(() => refused.times, patiently).toBeGreaterThan(0);
		await west.client.write({ resource: good("beer", "") });
		await expect.poll(() => east.goods("bbb"), patiently).toEqual(["ale", "beer"]);
		expect(await east.goods("aaa")).toEqual(["ale"]);
		await expect.poll(() => east.report("aaa"), patiently).toMatchObject({ state: "Full" });
	});
});

it("imports continue while a deleted peer can't be recorded", { timeout: 300_000 }, async () => {
	const { decorate, refused } = withoutRoomFor(
		(record) => record.case === "exporting" && record.value.removedMs !== 0n,
	);
	const { west, east } = await start(decorate);
	await east.import({ peer: "west", export: "goods", partition: "copies" });
	await east.api.createToken({ name: "north" });
	east.run();
	await expect.poll(() => east.goods("copies"), patiently).toEqual(["ale"]);
	await east.client.delete({ id: idOf(Peering, "north") });
	await expect.poll(() => refused.times, patiently).toBeGreaterThan(0);
	await west.client.write({ resource: good("beer", "") });
	await expect.poll(() => east.goods("copies"), patiently).toEqual(["ale", "beer"]);
	expect(await east.report("copies")).toMatchObject({ snapshots: 1n, resumptions: 0n });
});

it("a peer that changes what is left out has the imports compared once a second at most", {
	timeout: 300_000,
}, async () => {
	const network = new TestNetwork();
	const clock = new FakeClock();
	const type = typeOf(Good.type);
	const cluster = newUlid(systemRuntime);
	const changes = 200;
	const acknowledged = { sequence: 0n };
	const named = { namespace: "default", name: "ale", type, version: "" };
	const resource = { id: { type, name: "ale", tenancy: { namespace: "default" } } };
	network.serve("hostile", {
		exchangeToken: () => ({ cluster }),
		getExport: () => ({ generation: "1", incarnation: cluster, types: [{ type, problem: "" }] }),
		acknowledge({ sequence }) {
			acknowledged.sequence = sequence;
			return {};
		},
		async *stream(_, { signal }) {
			yield { sequence: 1n, message: { case: "start", value: { streamId: "s" } } };
			for (let sequence = 2n; sequence <= changes; sequence += 1n) {
				yield sequence % 2n === 0n
					? { sequence, message: { case: "upsert", value: { resource, version: "" } } }
					: { sequence, message: { case: "delete", value: named } };
				await expect
					.poll(() => acknowledged.sequence, { ...patiently, interval: 1 })
					.toBe(sequence);
			}
			await new Promise((resolve) => signal.addEventListener("abort", resolve));
		},
	});
	let comparisons = 0;
	const decorate = (backend: StorageBackend) =>
		decorateBackend(backend, {
			list(query, options) {
				comparisons += query.type.kind === Import.type.kind ? 1 : 0;
				return backend.list(query, options);
			},
		});
	const east = await network.cluster("east", { decorate, clock });
	await network.peer(east, "hostile");
	await east.import({ peer: "hostile", export: "any", partition: "copies" });
	east.run();
	await expect.poll(() => acknowledged.sequence, patiently).toBe(BigInt(changes));
	expect(comparisons).toBeLessThan(10);
	const before = comparisons;
	clock.advance(1_000);
	await expect.poll(() => comparisons, patiently).toBe(before + 1);
});
