import { performance } from "node:perf_hooks";
import { BareMaps } from "./bare-maps.ts";
import type { Contender, IndexCount } from "./contender.ts";
import {
	genreReference,
	labelReference,
	makeDataSet,
	pathOf,
	perGenre,
	perLabel,
} from "./data-set.ts";
import { LibraryBTree } from "./library-btree.ts";
import { PlinthCache } from "./plinth-cache.ts";

/** Nanoseconds an operation, by operation. */
export type Timings = Readonly<Record<Operation, number | undefined>>;

export type Operation =
	| "insert"
	| "replace"
	| "get"
	| "list 10"
	| "list 1,000"
	| "parents"
	| "delete";

export interface Measurement {
	readonly size: number;
	readonly contender: string;
	readonly indexes: IndexCount;
	readonly timings: Timings;
}

const contenders: Readonly<Record<string, (indexes: IndexCount) => Contender>> = {
	"bare maps": (indexes) => new BareMaps(indexes),
	cache: (indexes) => new PlinthCache(indexes),
	"sorted-btree": (indexes) => new LibraryBTree(indexes),
};

/**
 * All contenders at one size, one after the other in each round, so that what slows the machine down
 * for a while slows all of them down. Each number is the best of the rounds.
 */
export function measure(size: number): Measurement[] {
	const data = makeDataSet(size);
	const labels = Array.from({ length: Math.min(size / perLabel, 20_000) }, (_, i) =>
		labelReference((i * 7919) % (size / perLabel)),
	);
	const genres = Array.from({ length: Math.min(size / perGenre, 500) }, (_, i) =>
		genreReference((i * 7919) % (size / perGenre)),
	);
	const paths = Array.from({ length: Math.min(size, 50_000) }, (_, i) => pathOf((i * 7919) % size));
	const rounds = size >= 1_000_000 ? 3 : size >= 100_000 ? 5 : 300;
	const results: Measurement[] = [];
	for (const indexes of [0, 1, 5] as const) {
		const best = new Map(
			Object.keys(contenders).map((name) => [name, new Map<Operation, number>()]),
		);
		for (let round = 0; round < rounds; round++) {
			for (const [name, make] of Object.entries(contenders)) {
				const times = best.get(name);
				const time = (operation: Operation, count: number, run: () => unknown) => {
					const start = performance.now();
					run();
					const ns = ((performance.now() - start) * 1e6) / count;
					times?.set(operation, Math.min(ns, times.get(operation) ?? Number.POSITIVE_INFINITY));
				};
				if (size >= 100_000) {
					globalThis.gc?.();
				}
				const contender = make(indexes);
				time("insert", size, () => contender.insertAll(data.items));
				time("get", size, () => expectCount(contender.getAll(data.ids), size));
				if (indexes > 0) {
					time("list 10", labels.length, () =>
						expectCount(contender.listLabels(labels), labels.length * perLabel),
					);
				}
				if (indexes === 5) {
					time("list 1,000", genres.length, () =>
						expectCount(contender.listGenres(genres), genres.length * perGenre),
					);
					time("parents", paths.length, () => contender.parents(paths));
				}
				time("replace", size, () => contender.insertAll(data.newer));
				time("get", size, () => expectCount(contender.getAll(data.ids), size));
				time("delete", size, () => contender.deleteAll(data.ids));
				expectCount(contender.getAll(data.ids), 0);
			}
		}
		for (const [contender, times] of best) {
			const timings = Object.fromEntries(times) as Timings;
			results.push({ size, contender, indexes, timings });
		}
	}
	return results;
}

function expectCount(actual: number, expected: number): void {
	if (actual !== expected) {
		throw new Error(`a contender found ${actual} instead of ${expected}`);
	}
}

if (process.argv[2] !== undefined) {
	process.stdout.write(JSON.stringify(measure(Number(process.argv[2]))));
}
