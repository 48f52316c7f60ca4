import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import type { MapResult } from "../define/mapper.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { RequestBursts } from "./request-bursts.ts";

const artists = Array.from({ length: 20 }, (_, at) => `artist-${at}`);

/** Writes albums of all artists in turn, so that those of one artist are far apart. */
function putAlbums({ service }: TestBench, count: number, value = ""): void {
	for (let at = 0; at < count; at++) {
		const name = artists[at % artists.length] ?? "";
		service.put(demo(Album, `album-${at}`, `${name} ${value}`));
	}
}

/** Settles until nothing has been reconciled for some iterations of the event loop. */
async function settled(bench: TestBench, reconciled: readonly string[]): Promise<void> {
	let before = -1;
	while (before !== reconciled.length) {
		before = reconciled.length;
		for (let round = 0; round < 20; round++) {
			await bench.settle();
		}
	}
}

/** A controller of artists that counts its calls, and how its albums are mapped to it. */
function counting(map: (artist: string) => MapResult, concurrency = 4) {
	const reconciled: string[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		concurrency,
		watches: [watch(Album, { map: (_, { data }) => map(data.value.split(" ")[0] ?? "") })],
		async reconcile(_, { id }) {
			reconciled.push(id.name);
		},
	});
	return { controller, reconciled };
}

const toArtist = (name: string) => [idOf(Artist, name)];

describe("reconciles at the start", () => {
	it("are as many as managed resources, however many watched ones map to them", async () => {
		for (const albums of [200, 3_000]) {
			await using bench = new TestBench();
			for (const name of artists) {
				bench.service.put(demo(Artist, name));
			}
			putAlbums(bench, albums);
			const { controller, reconciled } = counting(toArtist);
			await bench.start([controller]);
			await settled(bench, reconciled);
			expect(reconciled.toSorted()).toEqual(artists.toSorted());
		}
	});

	it("are as many if mappers are asynchronous, and include what does not exist yet", async () => {
		await using bench = new TestBench();
		putAlbums(bench, 160);
		const { controller, reconciled } = counting(async (name) => {
			await new Promise((resolve) => setImmediate(resolve));
			return toArtist(name);
		});
		await bench.start([controller]);
		await settled(bench, reconciled);
		expect(reconciled.toSorted()).toEqual(artists.toSorted());
	});

	it("begin after 30 s if a mapper hangs, and at once for what changes", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "waiting"));
		bench.service.put(demo(Album, "blue", "miles"));
		const { controller, reconciled } = counting(() => new Promise(() => {}));
		await bench.start([controller]);
		bench.service.put(demo(Artist, "changed"));
		await settled(bench, reconciled);
		expect(reconciled).toEqual(["changed"]);
		await bench.advance(29_999);
		expect(reconciled).toEqual(["changed"]);
		await bench.advance(1);
		expect(reconciled).toEqual(["changed", "waiting"]);
	});

	it("don't wait for a mapper that fails", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles"));
		bench.service.put(demo(Album, "blue", "miles"));
		const { controller, reconciled } = counting(() => {
			throw new Error("broken mapper");
		});
		await bench.start([controller]);
		await settled(bench, reconciled);
		expect(reconciled).toEqual(["miles"]);
	});
});

describe("a burst of changes", () => {
	it("causes one reconcile per managed resource if it arrives at once", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = counting(toArtist);
		await bench.start([controller]);
		putAlbums(bench, 1_000);
		await settled(bench, reconciled);
		expect(reconciled.toSorted()).toEqual(artists.toSorted());
	});

	it("ends after 64 iterations of the event loop if changes keep arriving", () => {
		const tasks: (() => void)[] = [];
		const released: string[] = [];
		const bursts = new RequestBursts({
			scheduler: { schedule: (task) => void tasks.push(task), turn: () => undefined },
			isMapping: () => true,
			release: (key) => released.push(key),
		});
		for (const round of [1, 2]) {
			bursts.add(`${round}`);
			for (let iteration = 1; iteration <= 64; iteration++) {
				expect(released).not.toContain(`${round}`);
				bursts.add(`${round}/${iteration}`);
				tasks.shift()?.();
			}
			expect(released.at(-1)).toBe(`${round}/64`);
			expect(tasks).toEqual([]);
		}
	});

	it("ends while mappers wait for something", async () => {
		await using bench = new TestBench();
		const { controller, reconciled } = counting((name) =>
			name === "artist-0" ? toArtist(name) : new Promise(() => {}),
		);
		await bench.start([controller]);
		putAlbums(bench, 100);
		await settled(bench, reconciled);
		expect(reconciled).toEqual(["artist-0"]);
	});
});
