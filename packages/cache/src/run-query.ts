import { CacheError, reason } from "./cache-error.ts";
import type { Query, Reader } from "./reader.ts";

/**
 * Runs a query on the caller's view of the cache.
 *
 * @throws CacheError if there is no such query, or if it fails, for example on an invalid argument.
 */
export function runQuery(
	queries: ReadonlyMap<string, Query>,
	view: Reader,
	name: string,
	args: readonly unknown[],
): unknown {
	const query = queries.get(name);
	if (query === undefined) {
		const known = [...queries.keys()].join(", ") || "none";
		throw new CacheError(`the cache has no query "${name}"; known: ${known}`);
	}
	try {
		return query(view, ...args);
	} catch (cause) {
		throw new CacheError(`query "${name}" failed: ${reason(cause)}`, { cause });
	}
}
