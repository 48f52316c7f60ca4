import type { ID, Resource } from "@plinth/proto";
import type { DecodeError, ResourceName, ResourceType } from "@plinth/resource";
import type { AnyIndex } from "./index-definition.ts";
import type { Queries, Reader } from "./reader.ts";
import type { Sources } from "./source.ts";

/** The declaration of a cache. */
export interface CacheOptions<Q extends Queries> {
	/** The types that it can contain; at most one group version of each. */
	readonly types: readonly ResourceType[];
	/** Indexes on any of the types; names are unique per type. */
	readonly indexes?: readonly AnyIndex[];
	readonly queries?: Q;
	/** The region of the service, if it has one. In reads, it stands for what is no copy. */
	readonly region?: string | undefined;
	/**
	 * Called if an index needs data that can't be decoded. The index then omits the resource, even if it
	 * requires a key, and `insert` succeeds. Without this callback, `insert` throws an IndexError.
	 */
	readonly onUndecodable?: UndecodableListener;
	/** Whether to check all invariants after each change, in time linear in the size of the cache; for tests. */
	readonly validate?: boolean;
}

/** Called for a resource that an index omits because its data can't be decoded. */
export type UndecodableListener = (
	type: ResourceType,
	resource: Resource,
	error: DecodeError,
) => void;

/** The size of one type in a cache. */
export interface TypeStats {
	/** `demo.v2.Album` */
	readonly type: string;
	/** The number of resources, with copies of other regions' resources. */
	readonly size: number;
	readonly indexes: readonly IndexStats[];
}

/** The size of one index. */
export interface IndexStats {
	readonly name: string;
	/** The number of entries: a resource with three keys counts three times. */
	readonly keys: number;
}

/**
 * Resources of some types in memory, found by ID and by index. It stores the inserted objects, which are
 * shared and must not be modified any more (in development and in tests they are frozen).
 *
 * All operations are synchronous: a reader never sees a partial insert or delete.
 */
export interface Cache<Q extends Queries = Queries> extends Reader<Q>, Sources {
	/**
	 * Inserts a resource, or replaces the one with the same name and region, whatever its incarnation.
	 *
	 * @throws CacheError if it has no name or its type is not declared, IndexError if an index fails on it
	 * or requires a key that it lacks. The cache is unchanged then.
	 */
	insert(resource: Resource): void;
	/**
	 * Removes the resource of that type, region, tenancy and name, and returns it as it was cached; `undefined` if
	 * it is not cached.
	 *
	 * @throws CacheError if the type is not declared.
	 */
	delete(target: Resource | ResourceName): Resource | undefined;
	/**
	 * The IDs of the cached resources of the type at the time of the call, in no particular order: of those that are no
	 * copies or, with a region, of the copies of that region, or of all for `*`.
	 */
	ids(type: ResourceType, region?: string): ID[];
	/** The number of cached resources of the type, with copies. */
	size(type: ResourceType): number;
	/** The sizes of all types, in declaration order. */
	stats(): TypeStats[];
	readonly types: readonly ResourceType[];
	readonly indexes: readonly AnyIndex[];
}
