import type { Decoded, ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import type { Query } from "./reader.ts";

/**
 * The resources of a type by ID, or by one index, with the arguments of the reader as they come (as one
 * array: spreading them again at each layer costs as much as the look-up). Throws CacheErrors on bad
 * arguments.
 */
export interface Source {
	/**
	 * Where the resources are by ID: as `get`, without an array for the argument. To fill one costs a
	 * line of the processor's cache on each call, which is a fifth of a look-up among a million.
	 */
	find?(id: unknown): Decoded | undefined;
	get(args: readonly unknown[]): Decoded | undefined;
	list(args: readonly unknown[]): Decoded[];
	iterate(args: readonly unknown[]): IteratorObject<Decoded, undefined>;
	parents(args: readonly unknown[]): Decoded[];
}

/** What readers read from. */
export interface Sources {
	/** @throws CacheError where there is no such type or index. */
	source(what: ResourceType | AnyIndex): Source;
	readonly queries: ReadonlyMap<string, Query>;
}
