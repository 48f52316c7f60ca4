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
