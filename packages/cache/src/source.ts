import type { Decoded, ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import type { Query } from "./reader.ts";

/**
 * The resources of a type by ID, or by one index. Arguments are passed on as one array, since spreading
 * them at each layer costs as much as the lookup. Throws CacheErrors on invalid arguments.
 */
export interface Source {
	/**
	 * Present if the source is by ID: like `get`, without an array for the argument. Filling an array costs a
	 * cache line per call, which is a fifth of a lookup among a million.
	 */
	find?(id: unknown): Decoded | undefined;
	get(args: readonly unknown[]): Decoded | undefined;
	list(args: readonly unknown[]): Decoded[];
	iterate(args: readonly unknown[]): IteratorObject<Decoded, undefined>;
	parents(args: readonly unknown[]): Decoded[];
}

/** The sources that readers read from. */
export interface Sources {
	/** @throws CacheError if the type or the index is not declared. */
	source(target: ResourceType | AnyIndex): Source;
	/** The sources of copies of the region, or of everything for `*`. */
	sourcesIn(region: string): Sources;
	readonly queries: ReadonlyMap<string, Query>;
}
