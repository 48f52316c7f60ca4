import type { Cache, CacheOptions } from "./cache.ts";
import { assertDeclaration } from "./declaration.ts";
import type { Queries } from "./reader.ts";
import { SourceReader } from "./source-reader.ts";
import { Store } from "./store.ts";

/**
 * Creates an empty cache.
 *
 * @throws CacheError if the declaration is invalid: a duplicate type, an empty or duplicate name, a missing
 * function, an index on an undeclared type.
 */
export function createCache<Q extends Queries>(options: CacheOptions<Q>): Cache<Q> {
	assertDeclaration(options);
	const { types, indexes = [], queries = {}, validate = false } = options;
	const { region, onUndecodable } = options;
	const store = new Store({
		...{ types, indexes, region, validate, onUndecodable },
		queries: new Map(Object.entries(queries)),
	});
	return Object.assign(new SourceReader<Q, "plain">(store), {
		types: store.types,
		indexes: store.indexes,
		queries: store.queries,
		source: store.source.bind(store),
		sourcesIn: store.sourcesIn.bind(store),
		insert: store.insert.bind(store),
		delete: store.delete.bind(store),
		ids: store.ids.bind(store),
		size: store.size.bind(store),
		stats: store.stats.bind(store),
	});
}
