import { performance } from "node:perf_hooks";
import { BareMaps } from "./bare-maps.ts";
import type { Contender, IndexCount } from "./contender.ts";
import { type DataSet, makeDataSet, perGenre, perLabel } from "./data-set.ts";
import { LibraryBTree } from "./library-btree.ts";
import { PlinthCache } from "./plinth-cache.ts";

export const operations = [
	"insert",
	"replace",
	"get",
	"list 10, first",
	"list 10",
	"list 1,000, first",
	"list 1,000",
	"parents",
	"delete",
] as const;

export type Operation = (typeof operations)[number];

/** The nanoseconds of one operation. */
export interface Speed {
	readonly size: number;
	readonly indexes: IndexCount;
	readonly contender: string;
	readonly operation: Operation;
	readonly ns: number;
}

type Make = (indexes: IndexCount) => Contender;

const contenders: ReadonlyMap<string, Make> = new Map<string, Make>([
	["bare maps", (indexes) => new BareMaps(indexes)],
	["cache", (indexes) => new PlinthCache(indexes)],
	["sorted-btree", (indexes) => new LibraryBTree(indexes)],
]);

/**
 * All contenders at one size with so many indexes. Each round does one operation after the other, with all contenders in
 * turn, so that what slows the machine down for a while slows all of them down. Each number is the
 * best of all rounds.
 */
export function measureSpeed(size: number, indexes: IndexCount): Speed[] {
	alive.push(...warmUp(indexes));
	const data = makeDataSet(size);
	const best = new Map<string, number>();
	for (let round = 0; round < roundsOf(size); round++) {
		runRound(data, indexes, round, best);
	}
	return [...best].map(([key, ns]) => {
		const [contender, operation] = JSON.parse(key);
		return { size, indexes, contender, operation, ns };
	});
}

/**
 * Contenders that hold a little for as long as the process lives. When the last object of a shape is
 * collected, the engine forgets the code that it has compiled for the shape: each round would begin
 * with slow code, as no process does that has a cache all its life.
 */
const alive: Contender[] = [];

/**
 * Has the engine compile all contenders as it does what has run for a while. Without it, what is
 * measured at a large size is how soon that happens. Answers contenders that hold all kinds of what
 * they are made of.
 */
function warmUp(indexes: IndexCount): Contender[] {
	const data = makeDataSet(1000);
	for (let round = 0; round < 300; round++) {
		runRound(data, indexes, round, new Map());
	}
	return [...contenders.values()].map((make) => {
		const contender = make(indexes);
		contender.insertAll(data.items);
		contender.getAll(data.ids);
		return contender;
	});
}

/** A multiple of the number of contenders, so that each comes first equally often. */
function roundsOf(size: number): number {
	return size <= 1000 ? 600 : size <= 100_000 ? 9 : 3;
}

function runRound(
	data: DataSet,
	indexes: IndexCount,
	round: number,
	best: Map<string, number>,
): void {
	const { size, items, newer, ids, labels, genres, paths } = data;
	if (size > 1000) {
		globalThis.gc?.();
	}
	const made = [...contenders].map(([name, make]) => ({ name, contender: make(indexes) }));
	// Whoever comes first in a round finds the data in no processor's cache.
	const all = made
		.map((_, i) => made[(i + round) % made.length])
		.filter((one) => one !== undefined);
	const time = (operation: Operation, count: number, run: (contender: Contender) => unknown) => {
		for (const { name, contender } of all) {
			const start = performance.now();
			run(contender);
			const ns = ((performance.now() - start) * 1e6) / count;
			const key = JSON.stringify([name, operation]);
			best.set(key, Math.min(ns, best.get(key) ?? Number.POSITIVE_INFINITY));
		}
	};
	const getAll = () => time("get", size, (c) => expectCount(c.getAll(ids), size));

	time("insert", size, (c) => c.insertAll(items));
	getAll();
	getAll();
	if (indexes > 0) {
		const count = labels.length * perLabel;
		time("list 10, first", labels.length, (c) => expectCount(c.listLabels(labels), count));
		time("list 10", labels.length, (c) => expectCount(c.listLabels(labels), count));
		time("list 10", labels.length, (c) => expectCount(c.listLabels(labels), count));
	}
	if (indexes === 5) {
		const count = genres.length * perGenre;
		time("list 1,000, first", genres.length, (c) => expectCount(c.listGenres(genres), count));
		time("list 1,000", genres.length, (c) => expectCount(c.listGenres(genres), count));
		time("list 1,000", genres.length, (c) => expectCount(c.listGenres(genres), count));
		time("parents", paths.length, (c) => c.parents(paths));
	}
	time("replace", newer.length, (c) => c.insertAll(newer));
	getAll();
	time("delete", size, (c) => c.deleteAll(ids));
	for (const { contender } of all) {
		expectCount(contender.getAll(ids), 0);
	}
}

function expectCount(actual: number, expected: number): void {
	if (actual !== expected) {
		throw new Error(`a contender found ${actual} instead of ${expected}`);
	}
}
