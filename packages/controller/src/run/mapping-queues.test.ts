import { create } from "@bufbuild/protobuf";
import { IDSchema } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import type { Mapper } from "../define/mapper.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo, Label } from "../demo-types.fixture.ts";
import { TestBench } from "../running-manager.fixture.ts";

/** A controller of artists whose albums name their artist in their data. */
function controllerWith(map: Mapper<DemoType["schema"]>) {
	const reconciled: string[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		watches: [watch(Album, { map })],
		async reconcile(context, { id }) {
			const albums = context.cache.list(Album).filter(({ data }) => data.value === id.name);
			reconciled.push(`${id.name}:${albums.length}`);
		},
	});
	return { controller, reconciled };
}

const byData: Mapper<DemoType["schema"]> = (_, { data }) => [idOf(Artist, data.value)];

describe("the mapping of a watched type", () => {
	it("maps an update as it was and as it is, so that what lost it learns of it", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = controllerWith(byData);
		await bench.start([controller]);
		bench.service.put(demo(Album, "blue", "miles"));
		await bench.settle();
		bench.service.put(demo(Album, "blue", "nina"));
		await bench.settle();
		expect(reconciled).toEqual(["miles:1", "miles:0", "nina:1"]);
		bench.service.remove(idOf(Album, "blue"));
		await bench.settle();
		expect(reconciled.at(-1)).toBe("nina:0");
	});

	it("maps every version in between, even when the mapper has failed for all of them", async () => {
		await using bench = new TestBench();
		let broken = true;
		const { controller, reconciled } = controllerWith((context, changed) => {
			if (broken) {
				throw new Error("broken mapper");
			}
			return byData(context, changed);
		});
		await bench.start([controller]);
		for (const artist of ["miles", "nina", "thelonious"]) {
			bench.service.put(demo(Album, "blue", artist));
			await bench.settle();
		}
		bench.service.put(demo(Album, "other", "miles"));
		await bench.settle();
		expect(reconciled).toEqual([]);
		const failure = bench.log.find(({ message }) => message === "mapper failed");
		expect(failure?.fields).toMatchObject({
			controller: "artist",
			type: "demo.v1.Album",
			key: "demo.Album/default/default/blue",
		});
		expect(failure?.fields.err).toHaveProperty("stack");
		broken = false;
		await bench.advance(1_000);
		expect(new Set(reconciled)).toEqual(new Set(["miles:1", "nina:0", "thelonious:1"]));
		expect(bench.state("artist").restarts).toBe(0);
	});

	it("maps the newest version however many waited, to what is yet to be created too", async () => {
		await using bench = new TestBench();
		let broken = true;
		const { controller, reconciled } = controllerWith(() => {
			if (broken) {
				throw new Error("broken mapper");
			}
			return [idOf(Artist, "blue")];
		});
		await bench.start([controller]);
		for (let version = 0; version < 70; version++) {
			bench.service.put(demo(Album, "blue", `${version}`));
			await bench.settle();
		}
		broken = false;
		await bench.advance(2_000_000);
		expect(new Set(reconciled)).toEqual(new Set(["blue:0"]));
	});

	it("enqueues all managed resources if too many versions are queued for a failing mapper", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles"));
		bench.service.put(demo(Artist, "nina"));
		const { controller, reconciled } = controllerWith(() => {
			throw new Error("broken mapper");
		});
		await bench.start([controller]);
		reconciled.length = 0;
		for (let version = 0; version < 70; version++) {
			bench.service.put(demo(Album, "blue", `${version}`));
			await bench.settle();
		}
		expect(reconciled).toEqual(["miles:0", "nina:0"]);
	});

	it("awaits mappers that are asynchronous", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = controllerWith(async (context, changed) => {
			await Promise.resolve();
			return byData(context, changed);
		});
		await bench.start([controller]);
		bench.service.put(demo(Album, "blue", "miles"));
		await bench.settle();
		bench.service.put(demo(Album, "blue", "nina"));
		await bench.settle();
		expect(reconciled).toEqual(["miles:1", "miles:0", "nina:1"]);
	});

	it("skips a resource that can't be decoded, and logs it", async () => {
		await using bench = new TestBench();
		const reconciled: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			watches: [watch(Album, { map: byData })],
			reconcile: async (_, { id }) => void reconciled.push(id.name),
		});
		await bench.start([controller]);
		const bad = demo(Album, "bad", "miles");
		if (bad.data !== undefined) {
			bad.data.value = new Uint8Array([0xff]);
		}
		bench.service.put(bad);
		bench.service.put(demo(Album, "good", "nina"));
		await bench.settle();
		expect(bench.state("artist")).toMatchObject({ phase: "running", restarts: 0 });
		expect(bench.messages("error")).toEqual([
			"resource can't be decoded and is not reconciled or mapped",
		]);
		expect(bench.messages("warn")).toEqual([]);
		expect(reconciled).toEqual(["nina"]);
	});

	it("drops a request for a type other than the managed one, with a warning", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = controllerWith(() => [
			idOf(Label, "columbia"),
			idOf(Artist, "miles"),
		]);
		await bench.start([controller]);
		bench.service.put(demo(Album, "blue"));
		await bench.settle();
		expect(reconciled).toEqual(["miles:0"]);
		expect(bench.messages("warn")).toEqual([
			"dropped a request for a type other than the managed one",
		]);
		expect(bench.state("artist").reconciles.dropped).toBe(1);
	});

	it("fills in the units of tenancy that a mapper leaves out", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = controllerWith(() => [
			create(IDSchema, { name: "miles", type: Artist.type }),
			idOf(Artist, "miles"),
		]);
		await bench.start([controller]);
		bench.service.put(demo(Album, "blue", "miles"));
		await bench.settle();
		expect(reconciled).toEqual(["miles:1"]);
	});
});
