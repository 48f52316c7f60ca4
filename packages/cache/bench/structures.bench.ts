import { spawnSync } from "node:child_process";
import { performance } from "node:perf_hooks";
import type { ID } from "@plinth/proto";
import BTreeModule from "sorted-btree";
import { type AlbumItem, makeDataSet } from "./data-set.ts";
import { RadixTree } from "./radix-tree.ts";

/**
 * Ways to find a resource by its ID, without anything else that a cache does: what the choice of the
 * cache's structure rests on (docs/data-structures.md).
 */
if (process.env.NODE_ENV !== "production") {
	const args = ["--expose-gc", "--max-old-space-size=8000", import.meta.filename];
	const env = { ...process.env, NODE_ENV: "production" };
	spawnSync(process.execPath, args, { stdio: "inherit", env });
} else {
	for (const size of [1000, 100_000]) {
		compare(size);
	}
}

interface Structure {
	insertAll(items: readonly AlbumItem[]): void;
	getAll(ids: readonly ID[]): number;
}

function compare(size: number): void {
	const data = makeDataSet(size);
	const makers: ReadonlyMap<string, () => Structure> = new Map([
		["nested maps", nestedMaps],
		["one map, keys built as strings", stringMap],
		["radix tree, keys built as strings", radixTree],
		["sorted-btree, keys built as strings", stringBTree],
		["sorted-btree, keys compared by segment", segmentBTree],
		["sorted array, keys compared by segment", sortedArray],
	]);
	const rows = [...makers].map(([structure, make]) => {
		let insert = Number.POSITIVE_INFINITY;
		let get = Number.POSITIVE_INFINITY;
		for (let round = 0; round < (size > 1000 ? 6 : 500); round++) {
			const made = make();
			insert = Math.min(insert, time(() => made.insertAll(data.items)) / size);
			get = Math.min(get, time(() => made.getAll(data.ids)) / size);
			if (made.getAll(data.ids) !== size) {
				throw new Error(`${structure} has lost something`);
			}
		}
		return { structure, "insert ns": Math.round(insert), "get ns": Math.round(get) };
	});
	console.log(`\n${size.toLocaleString("en")} resources by ID`);
	console.table(rows);
}

function time(run: () => void): number {
	const start = performance.now();
	run();
	return (performance.now() - start) * 1e6;
}

function nestedMaps(): Structure {
	const partitions = new Map<string, Map<string, Map<string, AlbumItem>>>();
	return {
		insertAll(items) {
			for (const item of items) {
				// The data set gives each an ID and a tenancy.
				const { tenancy, name } = item.resource.id!;
				const { partition, namespace } = tenancy!;
				child(child(partitions, partition), namespace).set(name, item);
			}
		},
		getAll(ids) {
			let found = 0;
			for (const { tenancy, name } of ids) {
				const { partition, namespace } = tenancy!;
				found += partitions.get(partition)?.get(namespace)?.get(name) === undefined ? 0 : 1;
			}
			return found;
		},
	};
}

function child<V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> {
	let inner = map.get(key);
	if (inner === undefined) {
		inner = new Map();
		map.set(key, inner);
	}
	return inner;
}

/** A structure over whole keys. */
interface Keyed<K> {
	set(key: K, item: AlbumItem): unknown;
	get(key: K): AlbumItem | undefined;
}

function keyed<K>(structure: Keyed<K>, keyOf: (id: ID) => K): Structure {
	return {
		insertAll(items) {
			for (const item of items) {
				structure.set(keyOf(item.resource.id!), item);
			}
		},
		getAll(ids) {
			let found = 0;
			for (const id of ids) {
				found += structure.get(keyOf(id)) === undefined ? 0 : 1;
			}
			return found;
		},
	};
}

function keyString({ tenancy, name }: ID): string {
	return `${tenancy?.partition}\0${tenancy?.namespace}\0${name}\0`;
}

function stringMap(): Structure {
	return keyed(new Map<string, AlbumItem>(), keyString);
}

function radixTree(): Structure {
	return keyed(new RadixTree<AlbumItem>(), keyString);
}

function stringBTree(): Structure {
	return keyed(new BTreeModule.default<string, AlbumItem>(), keyString);
}

function segmentBTree(): Structure {
	return keyed(new BTreeModule.default<ID, AlbumItem>(undefined, compareIds), (id) => id);
}

/** Inserts are appended and sorted once: what ordering everything at once costs. */
function sortedArray(): Structure {
	let sorted: AlbumItem[] = [];
	return {
		insertAll(items) {
			sorted = items.toSorted((a, b) => compareIds(a.resource.id!, b.resource.id!));
		},
		getAll(ids) {
			let found = 0;
			for (const id of ids) {
				let low = 0;
				let high = sorted.length;
				while (low < high) {
					const middle = (low + high) >>> 1;
					if (compareIds(sorted[middle]!.resource.id!, id) < 0) {
						low = middle + 1;
					} else {
						high = middle;
					}
				}
				found += sorted[low]?.resource.id?.name === id.name ? 1 : 0;
			}
			return found;
		},
	};
}

function compareIds(a: ID, b: ID): number {
	return (
		compareStrings(a.tenancy!.partition, b.tenancy!.partition) ||
		compareStrings(a.tenancy!.namespace, b.tenancy!.namespace) ||
		compareStrings(a.name, b.name)
	);
}

function compareStrings(a: string, b: string): number {
	return a === b ? 0 : a < b ? -1 : 1;
}
