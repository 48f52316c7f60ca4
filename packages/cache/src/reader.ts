import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { DeepReadonly } from "./deep-readonly.ts";
import type { Index } from "./index-definition.ts";
import type { ReferenceLike } from "./key.ts";

/**
 * A named query. It runs on the caller's view of the cache, so that it returns clones if that view does.
 * (Written as the type of a method: parameters of methods are bivariant, so that a query can declare
 * more specific ones than `unknown`.)
 */
export type Query = { run(cache: Reader, ...args: readonly unknown[]): unknown }["run"];

/** Queries by name. */
export type Queries = Readonly<Record<string, Query>>;

/** The arguments of a query. */
export type QueryArgs<Q> = Q extends (cache: never, ...args: infer Args) => unknown ? Args : never;

/** The result of a query. */
export type QueryResult<Q> = Q extends (...args: never[]) => infer Result ? Result : never;

/** The type of an item in a view: deeply read-only if the view is shared. */
export type View<T, Mode extends ViewMode> = Mode extends "shared" ? DeepReadonly<T> : T;

/** Whether the items of a view are typed as read-only (`shared`). */
export type ViewMode = "plain" | "shared";

/**
 * The read operations of a cache.
 *
 * Methods that accept a type use the index by ID: tenancy and name of the argument are compared, uid and
 * group version are ignored. A unit of tenancy that is empty or `*` ends the key, except for units that the
 * scope of the type lacks.
 *
 * Copies of other regions' resources are read only where they are asked for: by an argument that has their region, or in
 * `inRegion`. The region `*` stands for all, what is no copy first, then region by region.
 *
 * A resource whose data can't be decoded is an item like others, but reading its `data` throws the
 * DecodeError.
 *
 * @throws CacheError (from every method) if the type, the index or the query is not declared, or an
 * argument is invalid.
 */
export interface Reader<Q extends Queries = Queries, Mode extends ViewMode = "plain"> {
	/** The resource of that tenancy and name, or its copy if there is a region; `undefined` if there is none. */
	get<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode> | undefined;
	/** The first, by ID, of the resources with exactly that key, or `undefined`. */
	get<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode> | undefined;

	/** The resources whose ID starts with `prefix`, or all of the type, ordered by ID. */
	list<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	/** The resources with a key that starts with the given one, ordered by key and ID, without duplicates. */
	list<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];

	/** Like `list`, but lazily, from a snapshot of the cache at the time of the call. */
	iterate<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;

	/** The resources with a key that is a prefix of the given one: shortest first, then by ID, without duplicates. */
	parents<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	parents<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];

	/**
	 * The same reads, also by index and by query, of copies of the region, or of everything for `*`. Its results are
	 * ordered as those of the cache in each region. It reads what is cached when it is called, like the cache itself.
	 */
	inRegion(region: string): Reader<Q, Mode>;

	/** Runs the query of that name. */
	query<Name extends keyof Q & string>(
		name: Name,
		...args: QueryArgs<Q[Name]>
	): View<QueryResult<Q[Name]>, Mode>;
}
