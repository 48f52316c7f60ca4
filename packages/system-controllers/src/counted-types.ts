/** The number of resources of each type, by the key of the type. */
export type CountedTypes = ReadonlyMap<string, number>;

/** The limits of a message: the number of named types, and the length of their keys. */
const namedTypes = 12;
const keyCharacters = 100;

/**
 * The counts for messages: `3 demo.v2.Artist, 1 internal.v1.Tombstone`. Sorted by key, so that equal counts
 * give equal texts, and of bounded length.
 */
export function describeCounts(counts: CountedTypes): string {
	return listed(counts, (key, count) => `${count} ${key}`);
}

/** The types for messages: `demo.v2.Album, demo.v2.Artist`. Sorted, and of bounded length. */
export function describeTypes(counts: CountedTypes): string {
	return listed(counts, (key) => key);
}

function listed(counts: CountedTypes, describe: (key: string, count: number) => string): string {
	const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
	const named = sorted.slice(0, namedTypes).map(([key, count]) => describe(shortened(key), count));
	const rest = sorted.slice(namedTypes);
	if (rest.length === 0) {
		return named.join(", ");
	}
	const resources = rest.reduce((sum, [, count]) => sum + count, 0);
	const types = `${rest.length} more ${rest.length === 1 ? "type" : "types"}`;
	return `${named.join(", ")}, and ${types} (${resources} resources)`;
}

function shortened(key: string): string {
	return key.length > keyCharacters ? `${key.slice(0, keyCharacters)}…` : key;
}

/** The counts of the types that match. */
export function countsOf(counts: CountedTypes, matches: (key: string) => boolean): CountedTypes {
	return new Map([...counts].filter(([key]) => matches(key)));
}
