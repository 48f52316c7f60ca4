/** What a link to a table says, beside the type. */
export interface TableSearch {
	/** `*` for all, which is the default. */
	readonly partition?: string;
	readonly namespace?: string;
	readonly prefix?: string;
	/** The words of the text filter. */
	readonly q?: string;
	/** The name of a column, or the position of one of the type's columns; `-` before it reverses the order. */
	readonly sort?: string;
}

/** The tenancy of the resource that a link leads to. */
export interface ResourceSearch {
	readonly partition?: string;
	readonly namespace?: string;
}

/** Reads a link to a table. What it does not understand is ignored. */
export function parseTableSearch(search: Readonly<Record<string, unknown>>): TableSearch {
	return texts(search, ["partition", "namespace", "prefix", "q", "sort"]);
}

/** Reads a link to a resource. */
export function parseResourceSearch(search: Readonly<Record<string, unknown>>): ResourceSearch {
	return texts(search, ["partition", "namespace"]);
}

function texts<Key extends string>(
	search: Readonly<Record<string, unknown>>,
	keys: readonly Key[],
): Partial<Record<Key, string>> {
	const found: Partial<Record<Key, string>> = {};
	for (const key of keys) {
		const value = search[key];
		// The router parses what looks like a number or a boolean.
		if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
			found[key] = String(value);
		}
	}
	return found;
}
