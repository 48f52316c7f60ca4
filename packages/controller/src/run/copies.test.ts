import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ownerIndex } from "@plinth/cache";
import { cloneID, OriginSchema } from "@plinth/proto";
import { idOf, sameName } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { type WatchedRegions, watch } from "../define/watch.ts";
import { Album, Artist, copyOf, demo, Label } from "../demo-types.fixture.ts";
import { cacheList, ofType, sameNameAs } from "../index.ts";
import { TestBench } from "../running-manager.fixture.ts";

const albumsByOwner = ownerIndex(Album);

/** An artist controller that caches copies of artists and albums, and writes down what it sees of them. */
function recorder(regions: WatchedRegions, albumRegions: WatchedRegions = regions) {
	const reconciled: string[] = [];
	const mapped: string[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		indexes: [albumsByOwner],
		watches: [
			watch(Album, {
				regions: albumRegions,
				map: (_, { resource: { id, owner }, data }) => {
					mapped.push(`${id?.region ?? "here"} ${id?.name}@${data.value}`);
					return owner === undefined ? [] : [owner];
				},
			}),
			watch(Artist, { regions, map: sameNameAs(Artist) }),
		],
		async reconcile({ cache }, { id }) {
			const values = [
				cache.get(Artist, id)?.data.value,
				cache.get(Artist, { ...id, region: "us" })?.data.value,
				...cache.list(albumsByOwner, id).map(({ data }) => data.value),
				...cache
					.inRegion("*")
					.list(albumsByOwner, id)
					.map(({ resource, data }) => `${resource.id?.region ?? "here"}=${data.value}`),
			];
			reconciled.push(`${id.region ?? "here"} ${id.name}: ${values.join(" ")}`);
		},
	});
	return { controller, reconciled, mapped };
}

const miles = idOf(Artist, "miles");

function fill({ service }: TestBench) {
	service.put(demo(Artist, "miles", "trumpet"));
	service.put(copyOf(demo(Artist, "miles", "horn"), "us"));
	service.put(copyOf(demo(Artist, "nina", "piano"), "us"));
	service.put(demo(Album, "blue", "local", { owner: miles }));
	service.put(copyOf(demo(Album, "blue", "american", { owner: miles }), "us"));
	service.put(copyOf(demo(Album, "blue", "european", { owner: miles }), "eu"));
}

describe("a controller that asks for copies", () => {
	it("primes its cache with them, and maps them to local resources", async () => {
		await using bench = new TestBench();
		fill(bench);
		const slow = bench.service.shut("snapshot demo.v1.Album");
		const { controller, reconciled, mapped } = recorder("*");
		await bench.start([controller]);
		expect(reconciled).toEqual([]);
		slow.open();
		await bench.settle();
		expect(mapped.sort()).toEqual(["eu blue@european", "here blue@local", "us blue@american"]);
		expect(reconciled.sort()).toEqual([
			"here miles: trumpet horn local here=local eu=european us=american",
			// The copy of nina is mapped to the local one, which is missing.
			"here nina:  piano",
		]);
		expect(bench.state("artist").run?.cached.map(({ size }) => size)).toEqual([3, 3]);
	});

	it("is called for their changes and deletions", async () => {
		await using bench = new TestBench();
		fill(bench);
		const { controller, reconciled } = recorder("*");
		await bench.start([controller]);
		reconciled.length = 0;
		bench.service.put(copyOf(demo(Album, "blue", "canadian", { owner: miles }), "us"));
		await bench.settle();
		expect(reconciled).toEqual([
			"here miles: trumpet horn local here=local eu=european us=canadian",
		]);
		bench.service.remove({ ...miles, region: "us" });
		await bench.settle();
		bench.service.remove({ ...idOf(Album, "blue"), region: "eu" });
		await bench.settle();
		expect(reconciled.slice(1)).toEqual([
			"here miles: trumpet  local here=local eu=european us=canadian",
			"here miles: trumpet  local here=local us=canadian",
		]);
	});

	it("removes those that a new snapshot lacks", async () => {
		await using bench = new TestBench();
		fill(bench);
		const slow = bench.service.shut("snapshot demo.v1.Artist");
		const { controller, reconciled } = recorder("*");
		await bench.start([controller]);
		const compacted = new ConnectError("compacted", Code.OutOfRange);
		bench.service.failNext("resume demo.v1.Album", compacted);
		bench.service.remove({ ...idOf(Album, "blue"), region: "us" });
		slow.open();
		await bench.settle();
		expect(bench.state("artist").restarts).toBe(0);
		const last = reconciled.filter((line) => line.startsWith("here miles")).at(-1);
		expect(last).toBe("here miles: trumpet horn local here=local eu=european");
	});

	it("removes a resource whose name a copy of another cluster has in a new snapshot", async () => {
		await using bench = new TestBench();
		fill(bench);
		const slow = bench.service.shut("snapshot demo.v1.Artist");
		const { controller, reconciled } = recorder("*");
		await bench.start([controller]);
		bench.service.failNext("resume demo.v1.Album", new ConnectError("compacted", Code.OutOfRange));
		bench.service.remove(idOf(Album, "blue"));
		const foreign = demo(Album, "blue", "foreign", { owner: miles });
		foreign.origin = create(OriginSchema, { uid: "0".repeat(26) });
		bench.service.put(foreign);
		slow.open();
		await bench.settle();
		const last = reconciled.filter((line) => line.startsWith("here miles")).at(-1);
		expect(last).toBe("here miles: trumpet horn eu=european us=american");
	});

	it("receives those of the regions that it names alone", async () => {
		await using bench = new TestBench();
		fill(bench);
		const { controller, reconciled, mapped } = recorder(["us"], ["eu", "asia"]);
		await bench.start([controller]);
		bench.service.put(copyOf(demo(Album, "blue", "canadian", { owner: miles }), "us"));
		bench.service.remove({ ...idOf(Album, "blue"), region: "us" });
		await bench.settle();
		expect(mapped.sort()).toEqual(["eu blue@european", "here blue@local"]);
		expect(reconciled.sort()).toEqual([
			"here miles: trumpet horn local here=local eu=european",
			"here nina:  piano",
		]);
	});
});

describe("a controller that does not ask for copies", () => {
	function plain() {
		const reconciled: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			watches: [watch(Album, { map: (_, { resource: { owner } }) => (owner ? [owner] : []) })],
			async reconcile({ cache }, { id }) {
				const read = [cache.list(Artist, { region: "*" }), cache.list(Album, { region: "*" })];
				reconciled.push(`${id.name}: ${read.map(({ length }) => length).join(" ")}`);
			},
		});
		return { controller, reconciled };
	}

	it.each(["asked", "sent them anyway"])("has none (the server is %s)", async (how) => {
		await using bench = new TestBench();
		fill(bench);
		const { controller, reconciled } = plain();
		const { client } = bench.service;
		const generous = {
			...client,
			watchList: (request: object, options: object | undefined) =>
				client.watchList({ ...request, region: "*" }, options),
		};
		await bench.start([controller], how === "asked" ? {} : { client: generous });
		bench.service.put(copyOf(demo(Artist, "miles", "cornet"), "us"));
		bench.service.remove({ ...idOf(Album, "blue"), region: "us" });
		await bench.settle();
		expect(reconciled).toEqual(["miles: 1 1"]);
		expect(bench.state("artist").restarts).toBe(0);
	});

	it("has no copies of other clusters either, wherever they come from", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = plain();
		const { region: _, ...id } = copyOf(demo(Artist, "ella"), "us").id ?? miles;
		const imported = { ...copyOf(demo(Artist, "ella"), "us"), id: cloneID(id) };
		bench.service.put(imported);
		bench.service.put(demo(Artist, "miles"));
		await bench.start([controller]);
		expect(reconciled).toEqual(["miles: 1 0"]);
	});
});

describe("a copy of the managed type", () => {
	it("is never requested, whatever maps to it, nor after 8 hours", async () => {
		await using bench = new TestBench();
		fill(bench);
		const ids: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			watches: [
				watch(Artist, { regions: "*", map: (_, { resource: { id } }) => (id ? [id] : []) }),
				watch(Label, { map: ({ cache }) => cache.inRegion("*").list(Artist).flatMap(idsOf) }),
			],
			async reconcile({ cache }, { id }) {
				ids.push(`${id.region ?? "here"} ${id.name} ${cache.get(Artist, id)?.data.value}`);
			},
		});
		const manager = await bench.start([controller]);
		bench.service.put(demo(Label, "columbia"));
		await bench.settle();
		await bench.advance(9 * 3_600_000);
		expect(new Set(ids)).toEqual(new Set(["here miles trumpet"]));
		expect(new Set(bench.messages("warn"))).toEqual(
			new Set(["dropped a request for a copy of another region's resource"]),
		);
		expect(manager.state().controllers[0]?.reconciles.dropped).toBe(4);
	});

	it("is mapped by lookups to what has its name here", async () => {
		await using bench = new TestBench();
		fill(bench);
		const reconciled: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			when: () => false,
			watches: [watch(Album, { regions: "*", map: cacheList(Artist, ofType(Artist), withUs) })],
			async reconcile(_, { id }) {
				reconciled.push(`${id.region ?? "here"} ${id.name}`);
			},
		});
		await bench.start([controller]);
		reconciled.length = 0;
		bench.service.put(copyOf(demo(Album, "miles", "new"), "us"));
		await bench.settle();
		expect(reconciled).toEqual(["here miles"]);
	});

	it("is not written by its ID", async () => {
		await using bench = new TestBench();
		fill(bench);
		const errors: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			watches: [watch(Artist, { regions: ["us"], map: () => [] })],
			async reconcile(context, { id }) {
				const copy = context.cache.get(Artist, { ...id, region: "us" });
				if (copy?.resource.id !== undefined) {
					expect(sameName(copy.resource.id, { ...miles, region: "us" })).toBe(true);
					const init = { id: copy.resource.id, data: copy.data };
					for (const write of [
						context.writeIfChanged(Artist, init),
						context.write(Artist, init),
						context.delete(init.id),
					]) {
						await write.catch((error: Error) => errors.push(error.message));
					}
				}
			},
		});
		await bench.start([controller]);
		expect(errors).toEqual([
			"demo.v1.Artist default/default/miles (us) is a copy: it can be written in its region alone",
			expect.stringContaining("read-only"),
			expect.stringContaining("read-only"),
		]);
	});
});

const withUs = (id: ReturnType<typeof idOf>) => ({ ...id, region: "us" });

function idsOf({ resource: { id } }: { readonly resource: ReturnType<typeof demo> }) {
	return id === undefined ? [] : [id];
}
