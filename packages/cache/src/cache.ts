import type { ID, Resource } from "@plinth/proto";
import type { DecodeError, ResourceName, ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import type { Queries, Reader } from "./reader.ts";
import type { Sources } from "./source.ts";

/** What a cache is made of. */
export interface CacheOptions<Q extends Queries> {
	/** What it may hold; each family once, whatever the group version. */
	readonly types: readonly ResourceType[];
	/** On any of the types; names are the types' own. */
	readonly indexes?: readonly AnyIndex[];
	readonly queries?: Q;
	/**
	 * Called where an index needs data that can't be decoded. The index then leaves the resource out, also
	 * where it requires a key, and `insert` succeeds. Without it, `insert` throws the IndexError.
	 */
	readonly onUndecodable?: OnUndecodable;
	/** Whether to check all invariants after each change, in time that grows with the cache: for tests. */
	readonly validate?: boolean;
}

/** Told of a resource that an index leaves out because its data can't be decoded. */
export type OnUndecodable = (type: ResourceType, resource: Resource, error: DecodeError) => void;

/** How much there is of a type. */
export interface TypeStats {
	/** `demo.v2.Album` */
	readonly type: string;
	/** Resources. */
	readonly size: number;
	readonly indexes: readonly IndexStats[];
}

/** How much there is in an index. */
export interface IndexStats {
	readonly name: string;
	/** Keys of resources: a resource with three counts three times. */
	readonly keys: number;
}

/**
 * Resources of some types in memory, found by ID and by index. It holds the objects that it was
 * given: they belong to all who have them, and nobody may change them again (in development and in
 * tests they are frozen).
 *
 * All of it is synchronous: a reader sees whole inserts and deletes.
 */
export interface Cache<Q extends Queries = Queries> extends Reader<Q>, Sources {
	/**
	 * Puts a resource in; it replaces the one of that name, whatever its incarnation.
	 *
	 * @throws CacheError where it has no name or is of a type that the cache does not hold, IndexError
	 * where an index fails on it or requires a key that it lacks; then nothing has changed.
	 */
	insert(resource: Resource): void;
	/**
	 * Takes out the resource of that type, tenancy and name, and answers it as it was cached, or
	 * `undefined` where there is none.
	 *
	 * @throws CacheError where the type is none that the cache holds.
	 */
	delete(target: Resource | ResourceName): Resource | undefined;
	/** The IDs of all cached resources of the type at the time of the call, in no order. */
	ids(type: ResourceType): ID[];
	/** How many resources of the type there are. */
	size(type: ResourceType): number;
	/** How much there is of each type, in the order in which they were declared. */
	stats(): TypeStats[];
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
}
