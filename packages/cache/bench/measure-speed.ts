import { type Figures, otherCheckout, unlessQuick } from "@plinth/bench";
import { BareMaps } from "./bare-maps.ts";
import type { Contender, IndexCount } from "./contender.ts";
import { type DataSet, makeDataSet, perGenre, perLabel } from "./data-set.ts";
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

type Operation = (typeof operations)[number];

/** The nanoseconds of an operation, by contender, in interleaved rounds. */
export type Speeds = Partial<Record<Operation, Record<string, Figures>>>;

type Figured = Map<Operation, Map<string, number[]>>;

type Make = (indexes: IndexCount) => Contender;

/** The one that is compared with the others comes first. */
const contenders = new Map<string, Make>([
	["cache", (indexes) => new PlinthCache(indexes)],
	["bare maps", (indexes) => new BareMaps(indexes)],
]);
const other = otherCheckout("packages/cache/bench/plinth-cache.ts");
if (other !== undefined) {
	const before: { readonly PlinthCache: typeof PlinthCache } = await import(other);
	contenders.set("other", (indexes) => new before.PlinthCache(indexes));
}

/**
 * All contenders at one size with so many indexes. Each round does one operation after the other, with all
 * contenders in turn, so that whatever slows the machine down for a while slows all of them down.
 */
export function measureSpeed(size: number, indexes: IndexCount): Speeds {
	alive.push(...warmUp(indexes));
	const data = makeDataSet(size);
	const figured: Figured = new Map();
	for (let round = 0; round < roundsOf(size); round++) {
		runRound(data, indexes, round, figured);
	}
	return Object.fromEntries(
		[...figured].map(([operation, figures]) => [operation, Object.fromEntries(figures)]),
	);
}

/**
 * Contenders that hold a little for as long as the process lives. When the last object of a shape is
 * collected, the engine forgets the code that it has compiled for the shape: each round would begin
 * with slow code, as no process does that has a cache all its life.
 */
const alive: Contender[] = [];

/**
 * Has the engine compile all contenders as it does what has run for a while. Without it, what is
 * measured at a large size is how soon that happens. Returns contenders that hold all kinds of what
 * they are made of.
 */
function warmUp(indexes: IndexCount): Contender[] {
	const data = makeDataSet(1000);
	for (let round = 0; round < unlessQuick(300, 2); round++) {
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
	return unlessQuick(size <= 1000 ? 600 : size <= 100_000 ? 10 : 4, 2);
}

function runRound(data: DataSet, indexes: IndexCount, round: number, figured: Figured): void {
	const { size, items, newer, ids, labels, genres, paths } = data;
	if (size > 1000) {
		globalThis.gc?.();
	}
	const made = [...contenders].map(([name, make]) => ({ name, contender: make(indexes) }));
	// The first contender of a round finds the data in no processor's cache.
	const all = made
		.map((_, i) => made[(i + round) % made.length])
		.filter((one) => one !== undefined);
	const time = (operation: Operation, count: number, run: (contender: Contender) => unknown) => {
		for (const { name, contender } of all) {
			const start = performance.now();
			run(contender);
			const ns = ((performance.now() - start) * 1e6) / count;
			const ofOperation = figured.get(operation) ?? new Map<string, number[]>();
			figured.set(operation, ofOperation);
			const ofContender = ofOperation.get(name) ?? [];
			ofOperation.set(name, ofContender);
			ofContender.push(ns);
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
