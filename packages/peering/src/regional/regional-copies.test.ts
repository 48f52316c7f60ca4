import { create } from "@bufbuild/protobuf";
import { NamespaceSchema, PartitionSchema, type Resource } from "@plinth/proto";
import type { StreamResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import {
	decodeShared,
	encodeData,
	idOf,
	Namespace,
	newUlid,
	Partition,
	resourceOf,
	typeOf,
} from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend, Exhausted, type StorageBackend } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { Record } from "../records/peering-records.ts";
import { Good, good, goodId } from "../simulation/goods.fixture.ts";
import {
	LaterGood,
	laterGood,
	type TestRegionOptions,
	TestRegions,
} from "./two-regions.fixture.ts";

const patiently = { timeout: 300_000, interval: 20 };

/** The partition of which a record is. */
function partitionOf(resource: Resource): string | undefined {
	if (resource.id?.type?.kind !== Record.type.kind) {
		return undefined;
	}
	const { record } = decodeShared(Record, resource).data;
	return record.case === "import" || record.case === "regional"
		? record.value.partition
		: undefined;
}

/** Two regions: the east copies from the west. */
async function start(west: TestRegionOptions = {}, east: TestRegionOptions = {}) {
	const regions = new TestRegions();
	return {
		regions,
		west: await regions.region("west", west),
		east: await regions.region("east", east),
	};
}

/** A storage that refuses to change records of the partition `other` while it is full. */
function withoutRoom(isFull: () => boolean) {
	const refused = { times: 0 };
	const decorate = (backend: StorageBackend) =>
		decorateBackend(backend, {
			commit: async (mutations, options) => {
				const isOther = mutations.some(
					(each) => each.op === "put" && partitionOf(each.resource) === "other",
				);
				if (isFull() && isOther) {
					refused.times += 1;
					throw new Exhausted("the storage is full");
				}
				return backend.commit(mutations, options);
			},
		});
	return { decorate, refused };
}

it("a partition whose record finds no room holds up no other one", {
	timeout: 300_000,
}, async () => {
	const { decorate, refused } = withoutRoom(() => true);
	const { west, east } = await start({}, { decorate });
	const other = create(PartitionSchema, { copies: { regions: ["east"] } });
	await west.client.write({
		resource: resourceOf(Partition, { id: idOf(Partition, "other"), data: other }),
	});
	await west.partitionPolicy("east");
	await west.client.write({ resource: good("ale", "pale") });
	east.run();
	await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale"]);
	const before = refused.times;
	await expect.poll(() => refused.times, patiently).toBeGreaterThan(before + 1);
	expect(await east.record("west")).toMatchObject({ snapshots: 1n, resumptions: 0n });
});

it("a partition whose removal finds no room holds up no other one", {
	timeout: 300_000,
}, async () => {
	let isFull = false;
	const { decorate, refused } = withoutRoom(() => isFull);
	const { regions, west, east } = await start({}, { decorate });
	const data = create(PartitionSchema, { copies: { regions: ["east"] } });
	await west.client.write({
		resource: resourceOf(Partition, { id: idOf(Partition, "other"), data }),
	});
	const id = idOf(Namespace, "default", { partition: "other" });
	await west.client.write({ resource: resourceOf(Namespace, { id }) });
	await west.partitionPolicy("east");
	const there = good("beer", "dark");
	const tenancy = { partition: "other", namespace: "default" };
	await west.client.write({ resource: { ...there, id: idOf(Good, "beer", tenancy) } });
	await west.client.write({ resource: good("ale", "pale") });
	east.run();
	const copies = async () => (await east.copiesOf("west")).toSorted();
	await expect.poll(copies, patiently).toEqual(["v1 ale", "v1 beer"]);
	// The removal begins with the positions: without any, it would need no room for its first step.
	const positions = async () => (await east.record("west", "other"))?.positions.length;
	await expect.poll(positions, patiently).toBeGreaterThan(0);
	isFull = true;
	regions.delete(west);
	await expect.poll(copies, patiently).toEqual(["v1 beer"]);
	await expect.poll(() => refused.times, patiently).toBeGreaterThan(0);
	isFull = false;
	await expect.poll(copies, patiently).toEqual([]);
	for (const partition of ["default", "other"]) {
		await expect.poll(() => east.record("west", partition), patiently).toBeUndefined();
	}
});

it("a storage that is full takes the removals that make room, wherever in the stream they are", {
	timeout: 300_000,
}, async () => {
	let refusals = 0;
	const withRoomForTwo = (backend: StorageBackend) =>
		decorateBackend(backend, {
			commit: async (mutations, options) => {
				const counts = await backend.countByTypeIn({ partition: "default", region: "west" });
				if (mutations.some(({ op }) => op === "put") && (counts.get(Good.key) ?? 0) >= 2) {
					refusals += 1;
					throw new Exhausted("the storage is full");
				}
				return backend.commit(mutations, options);
			},
		});
	const { west, east } = await start({}, { decorate: withRoomForTwo });
	await west.partitionPolicy("east");
	for (const name of ["ale", "beer"]) {
		await west.client.write({ resource: good(name, "") });
	}
	east.run();
	await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale", "v1 beer"]);
	const before = refusals;
	await west.client.write({ resource: good("cider", "dry") });
	await expect.poll(() => refusals, patiently).toBeGreaterThan(before + 1);
	await west.client.delete({ id: goodId("ale") });
	await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 beer", "v1 cider"]);
});

describe("a type with two versions", { timeout: 300_000 }, () => {
	const both = { types: [Good, LaterGood] };

	it("is copied in both, if this region has both", async () => {
		const { west, east } = await start(both, both);
		await west.partitionPolicy("east");
		await west.client.write({ resource: good("ale", "pale") });
		await west.client.write({ resource: laterGood("beer", "dark") });
		east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale", "v2 beer"]);
		// In another version, it is the same resource.
		await west.client.write({ resource: laterGood("ale", "stale") });
		await west.client.write({ resource: good("beer", "light") });
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v2 ale", "v1 beer"]);
		expect(await east.record("west")).toMatchObject({ leftOutTotal: 0n });
	});

	it("is copied in the version that both regions have, and the rest is left out by name", async () => {
		const { west, east } = await start(both);
		await west.partitionPolicy("east");
		await west.client.write({ resource: good("ale", "pale") });
		await west.client.write({ resource: laterGood("beer", "dark") });
		east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale"]);
		const reason = "resource type goods.v2.Good not registered";
		await expect
			.poll(() => east.record("west"), patiently)
			.toMatchObject({
				leftOutTotal: 2n,
				leftOut: expect.arrayContaining([
					expect.objectContaining({ type: "goods.v2.Good", name: "", reason }),
					expect.objectContaining({ type: "goods.v1.Good", name: "beer", reason }),
				]),
			});
		// An older copy is removed when its original is in a version that this region lacks.
		await west.client.write({ resource: laterGood("ale", "stale") });
		await west.client.write({ resource: good("beer", "light") });
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 beer"]);
	});
});

describe("a version of a type that the source no longer serves", { timeout: 300_000 }, () => {
	it("is no longer offered: copies in it are removed", async () => {
		const both = { types: [Good, LaterGood] };
		const { regions, west, east } = await start(both, both);
		await west.partitionPolicy("east");
		await west.client.write({ resource: good("ale", "pale") });
		await west.client.write({ resource: laterGood("beer", "dark") });
		const stop = east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale", "v2 beer"]);
		await expect.poll(async () => (await east.record("west"))?.currentMs, patiently).not.toBe(0n);
		await stop();
		await regions.region("west", { types: [LaterGood], continues: west });
		east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v2 beer"]);
	});
});

describe("a region that offers too much", { timeout: 300_000 }, () => {
	it("is named with the limit, and is copied as far as what is removed makes room", async () => {
		const { west, east } = await start({}, { maxCopies: 2 });
		await west.partitionPolicy("east");
		await west.client.write({ resource: good("ale", "pale") });
		east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale"]);
		await west.client.write({ resource: good("beer", "dark") });
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale", "v1 beer"]);
		await west.client.write({ resource: good("cider", "dry") });
		await expect
			.poll(() => east.record("west"), patiently)
			.toMatchObject({
				state: "TooManyCopies",
				message:
					"the region west offers more than the 2 copies of one partition that may be stored: name it in the policies of namespaces instead",
			});
		expect(await east.copiesOf("west")).toEqual(["v1 ale", "v1 beer"]);
		// What is removed at home makes room, though it comes later in the stream.
		await west.client.delete({ id: goodId("ale") });
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 beer", "v1 cider"]);
		await expect.poll(() => east.record("west"), patiently).toMatchObject({ state: "Streaming" });
	});

	it("is copied again once policies name namespaces that are within the limit", async () => {
		const { west, east } = await start({}, { maxCopies: 2 });
		await west.partitionPolicy("east");
		for (const name of ["ale", "beer", "cider"]) {
			await west.client.write({ resource: good(name, "") });
		}
		east.run();
		const state = async () => (await east.record("west"))?.state;
		await expect.poll(state, patiently).toBe("TooManyCopies");
		const data = create(NamespaceSchema, { copies: { regions: ["east"] } });
		await west.client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, "shop"), data }),
		});
		for (const name of ["date", "elder"]) {
			await west.client.write({ resource: good(name, "", "shop") });
		}
		await west.partitionPolicy();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 date", "v1 elder"]);
		await expect.poll(state, patiently).toBe("Streaming");
	});
});

describe("what a region sends", { timeout: 300_000 }, () => {
	it("lacks what stays at home, and has neither path nor peering", async () => {
		const { west, east } = await start();
		await west.partitionPolicy("east");
		const resource = good("ale", "pale");
		resource.metadata = { finalizers: "held", shelf: "top" };
		const { resource: original } = await west.client.write({ resource });
		east.run();
		await expect.poll(() => east.copiesOf("west"), patiently).toEqual(["v1 ale"]);
		const { resource: copy } = await east.client.read({
			id: {
				...good("ale", "").id,
				$typeName: "plinth.resource.v1.ID",
				uid: "",
				name: "ale",
				region: "west",
			},
		});
		expect(copy?.metadata).toEqual({ shelf: "top" });
		expect(copy?.id?.uid).not.toBe(original?.id?.uid);
		expect(copy?.data).toEqual(original?.data);
		expect(copy?.origin).toMatchObject({
			...{ region: "west", partition: "default", path: [], peering: "" },
			...{ uid: original?.id?.uid, version: original?.version },
		});
	});
});

describe("a stream to a region", () => {
	const position = (type: typeof Good | typeof LaterGood) => ({
		type: typeOf(type.type),
		version: "",
	});
	const opened = async () => {
		const { west } = await start({ types: [Good, LaterGood] });
		await west.partitionPolicy("east");
		const route = west.route("east");
		const { offer } = await west.offers.getOffer({ route, partition: "default" });
		const open = (change: object, signal?: AbortSignal) =>
			west.offers.streamOffer(
				{
					route,
					stream: {
						...{ export: "default", positions: [] },
						...{ generation: offer?.generation ?? "", incarnation: offer?.incarnation ?? "" },
						...change,
					},
				},
				{ ...(signal && { signal }) },
			);
		const stream = (change: object) => Array.fromAsync(open(change));
		return { west, open, stream };
	};

	it("is refused for what is not offered, and for more than a request may have", async () => {
		const { west, stream } = await opened();
		await expect(stream({ generation: "x" })).rejects.toThrow("what is offered has changed");
		await expect(stream({ incarnation: newUlid(systemRuntime) })).rejects.toThrow("has changed");
		await expect(stream({ export: "other" })).rejects.toThrow(
			"no policy of partition other names the region east",
		);
		await expect(stream({ positions: [position(Good), position(LaterGood)] })).rejects.toThrow(
			"type goods.v2.Good has two positions",
		);
		await expect(
			stream({ positions: Array.from({ length: 1_001 }, () => position(Good)) }),
		).rejects.toThrow("positions has 1001 entries, more than 1000");
		const unknown = { type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" } };
		await expect(stream({ positions: [unknown] })).rejects.toThrow(
			"type tenancy.v1.Namespace is not streamed",
		);
		await west.partitionPolicy();
		await expect(stream({})).rejects.toThrow("no policy of partition default names the region");
	});

	it("ends when the policy is taken away", async () => {
		const { west, open } = await opened();
		const messages = open({ positions: [position(Good)] })[Symbol.asyncIterator]();
		await messages.next();
		await west.partitionPolicy("north");
		const rest = async () => {
			while (!(await messages.next()).done) {}
		};
		await expect(rest()).rejects.toThrow(
			"what is offered of partition default to region east has changed: stream again",
		);
	});

	it("sends nothing that was written after that, however late the stream is told", async () => {
		const { west, open } = await opened();
		const end = new AbortController();
		onTestFinished(() => end.abort());
		// They are told before the stream is.
		const query = {
			...{ type: Partition.type, namePrefix: "" },
			tenancy: { partition: "", namespace: "" },
		};
		for (let at = 0; at < 1_000; at += 1) {
			Array.fromAsync(west.backend.watchList(query, { signal: end.signal })).catch(() => {});
		}
		const sent: string[] = [];
		const ended = (async () => {
			for await (const { message } of open({ positions: [position(Good)] }, end.signal)) {
				sent.push(textOf(message));
			}
		})();
		ended.catch(() => {});
		await expect.poll(() => sent, patiently).toContain("endOfSnapshot");
		const stored = await west.backend.lookup(idOf(Partition, "default"));
		const put = (resource: Resource) => {
			const id = { ...resource.id, uid: resource.id?.uid || newUlid(systemRuntime) };
			return west.backend.commit([
				{ op: "put", resource: { ...resource, id } as Resource, expectedVersion: resource.version },
			]);
		};
		await Promise.all([
			put(good("ale", "public")),
			put({ ...stored, data: encodeData(PartitionSchema, create(PartitionSchema)) } as Resource),
			put(good("beer", "secret")),
		]);
		await expect(ended).rejects.toThrow("to region east has changed: stream again");
		expect(sent).not.toContain("beer");
	});

	it("is acknowledged by its own region only", async () => {
		const { west, open } = await opened();
		const end = new AbortController();
		const messages = open({}, end.signal)[Symbol.asyncIterator]();
		const { value } = await messages.next();
		const start = value?.message?.message;
		const streamId = start?.case === "start" ? start.value.streamId : "";
		const acknowledge = (from: string) =>
			west.offers.acknowledgeOffer({ route: west.route(from), streamId, sequence: 1n });
		await expect(acknowledge("north")).rejects.toThrow("no such stream at this server");
		await acknowledge("east");
		end.abort();
		await messages.next().catch(() => {});
	});
});

/** The name of the resource that a message has, or what message it is. */
function textOf(message: StreamResponse | undefined): string {
	const sent = message?.message;
	return (sent?.case === "upsert" ? sent.value.resource?.id?.name : sent?.case) ?? "";
}
