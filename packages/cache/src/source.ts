import type { Decoded, ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import type { Query } from "./reader.ts";

/**
 * The resources of a type by ID, or by one index, with the arguments of the reader as they come.
 * Throws CacheErrors on bad arguments.
 */
export interface Source {
	get(...args: unknown[]): Decoded | undefined;
	list(...args: unknown[]): Decoded[];
	iterate(...args: unknown[]): IteratorObject<Decoded, undefined>;
	parents(...args: unknown[]): Decoded[];
}

/** What readers read from. */
export interface Sources {
	/** @throws CacheError where there is no such type or index. */
	source(what: ResourceType | AnyIndex): Source;
	readonly queries: ReadonlyMap<string, Query>;
}
