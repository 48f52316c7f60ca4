import { type Entry, homeOf, type Node, nameOf } from "./node.ts";

/** Whether an entry comes before another of the same tenancy: by name. */
export function nameBefore(a: Entry, b: Entry): boolean {
	return nameOf(a) < nameOf(b);
}

/** Whether an entry comes before another of the same type: by tenancy, then by name. */
export function entryBefore(a: Entry, b: Entry): boolean {
	const homeA = homeOf(a);
	const homeB = homeOf(b);
	return homeA === homeB || homeA === undefined || homeB === undefined
		? nameOf(a) < nameOf(b)
		: comparePaths(homeA, homeB) < 0;
}

/** Orders two different nodes of one tree at the same depth. */
function comparePaths(a: Node, b: Node): number {
	if (a.parent !== undefined && b.parent !== undefined && a.parent !== b.parent) {
		return comparePaths(a.parent, b.parent);
	}
	return a.segment < b.segment ? -1 : 1;
}

/** Sorts the entries of one tenancy: names are read once per entry, not at each comparison. */
export function sortByName(entries: Iterable<Entry>): Entry[] {
	return Array.from(entries, (entry) => ({ name: nameOf(entry), entry }))
		.sort((a, b) => (a.name < b.name ? -1 : 1))
		.map(({ entry }) => entry);
}

/** Sorts entries of one type: tenancies are compared once per tenancy. */
export function sortEntries(entries: Iterable<Entry>): Entry[] {
	const byHome = Map.groupBy(entries, homeOf);
	return [...byHome]
		.sort(([a], [b]) => (a && b ? comparePaths(a, b) : 0))
		.flatMap(([, entries]) => sortByName(entries));
}

/**
 * Sorts a few entries of one type in place, by binary insertion, which makes about as few comparisons as possible.
 *
 * What it costs is mostly cache misses: the entries and their names are all over the memory. So they are read in a loop
 * first, whose misses the processor overlaps; between comparisons, it could not. Most keys have entries of one
 * tenancy, which are ordered by name alone.
 */
export function sortFew(entries: Entry[]): void {
	const names: string[] = [];
	const [first] = entries;
	const home = first && homeOf(first);
	let isOneTenancy = true;
	let characters = 0;
	for (let i = 0; i < entries.length; i++) {
		// `i` is less than the length.
		const entry = entries[i]!;
		const name = nameOf(entry);
		isOneTenancy &&= homeOf(entry) === home;
		// Its length is in the string itself.
		characters += name.length;
		names.push(name);
	}
	if (characters === 0) {
		return;
	}
	for (let i = 1; i < entries.length; i++) {
		// All indexes are below the length.
		const entry = entries[i]!;
		const name = names[i]!;
		let low = 0;
		let high = i;
		while (low < high) {
			const middle = (low + high) >>> 1;
			if (isOneTenancy ? names[middle]! < name : entryBefore(entries[middle]!, entry)) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		for (let j = i; j > low; j--) {
			entries[j] = entries[j - 1]!;
			names[j] = names[j - 1]!;
		}
		entries[low] = entry;
		names[low] = name;
	}
}
