/** How many resources there are of each type, by the type's key. */
export type CountedTypes = ReadonlyMap<string, number>;

/** How many types a message names, and how much of the key of each. What is beyond is counted. */
const namedTypes = 12;
const keyCharacters = 100;

/**
 * The counts for people: `3 demo.v2.Artist, 1 internal.v1.Tombstone`. In the order of the keys, so that
 * the same counts make the same text, and of bounded length.
 */
export function describeCounts(counts: CountedTypes): string {
	return listed(counts, (key, count) => `${count} ${key}`);
}

/** The types for people: `demo.v2.Artist, demo.v2.Album`. Likewise. */
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

/** The part of the counts whose types fit. */
export function countsOf(counts: CountedTypes, fits: (key: string) => boolean): CountedTypes {
	return new Map([...counts].filter(([key]) => fits(key)));
}
