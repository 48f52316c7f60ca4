import { setImmediate } from "node:timers/promises";
import { heapUsed, printTable, type Row, unlessQuick } from "@plinth/bench";
import { Album } from "../src/demo-types.fixture.ts";
import { makeAlbum } from "./data-set.ts";
import { PlinthCache } from "./plinth-cache.ts";

/**
 * 10 million inserts, replaces and deletes of 100 k names with 5 indexes: the heap after collection
 * must not grow from a tenth of the run to its end by more than 10 %. Lists and open iterators come
 * in between.
 */
await run();

async function run(): Promise<void> {
	const names = unlessQuick(100_000, 1_000);
	const total = unlessQuick(10_000_000, 100_000);
	const filled = new PlinthCache(5);
	const { cache } = filled;
	// Two versions of each name, which move between labels, genres, paths and titles.
	const versions = [0, 1].map((version) =>
		Array.from({ length: names }, (_, i) => {
			const album = makeAlbum(i, names);
			return version === 0 ? album : { ...makeAlbum((i * 7) % names, names), id: album.id };
		}),
	);
	const random = randomIntegers();
	let atTenth = 0;
	const rows: Row[] = [];
	for (let i = 1; i <= total; i++) {
		const name = random() % names;
		const dice = random() % 100;
		// Both exist: the dice and the name are below the lengths.
		const resource = versions[dice & 1]![name]!;
		if (dice < 70) {
			cache.insert(dice & 1 ? { ...resource } : resource);
		} else {
			cache.delete(resource);
		}
		if (i % 1000 === 0) {
			// Left open: its snapshot goes with it.
			cache.iterate(Album, { tenancy: resource.id?.tenancy, namePrefix: "album-1" }).next();
			// The cache has a WeakRef to the snapshot, which stays until the iteration of the event loop ends.
			await setImmediate();
		}
		if (i % (total / 10) === 0) {
			const heap = await heapUsed();
			atTenth ||= heap;
			rows.push({
				operations: i,
				resources: cache.size(Album),
				"heap MB": (heap / 2 ** 20).toFixed(1),
				"to a tenth of the run": (heap / atTenth).toFixed(3),
			});
			if (heap > atTenth * unlessQuick(1.1, 2)) {
				process.exitCode = 1;
			}
		}
	}
	printTable("Heap of a cache in use", rows);
	console.log(process.exitCode ? "the heap GREW by more than 10 %" : "the heap stays within 10 %");
}

/** The same integers in each run. */
function randomIntegers(): () => number {
	let state = 42;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state >>> 8;
	};
}
