import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { DeepReadonly } from "./deep-readonly.ts";
import type { Index } from "./index-definition.ts";
import type { ReferenceLike } from "./key.ts";

/**
 * A named question to a cache. It is asked through whichever view the caller has, so that its
 * answers are clones where the caller's are. (Written as a method's type: methods may ask for more
 * of their arguments than `unknown`.)
 */
export type Query = { ask(cache: Reader, ...args: readonly unknown[]): unknown }["ask"];

/** Queries by name. */
export type Queries = Readonly<Record<string, Query>>;

/** What a query takes from its caller. */
export type QueryArgs<Q> = Q extends (cache: never, ...args: infer Args) => unknown ? Args : never;

/** What a query answers. */
export type QueryResult<Q> = Q extends (...args: never[]) => infer Result ? Result : never;

/** An item in a view's terms: deeply read-only where it is shared. */
export type View<T, Mode extends ViewMode> = Mode extends "shared" ? DeepReadonly<T> : T;

/** Whether a view's items are typed as what nobody may write to. */
export type ViewMode = "plain" | "shared";

/**
 * What can be asked of a cache.
 *
 * Wherever it takes a type, the index meant is the one by ID: of the argument, tenancy and name count,
 * uid and group version do not. A unit that is empty or `*` ends the key, but for units that the
 * scope of the type lacks.
 *
 * A resource whose data can't be decoded is an item like others, but reading its `data` throws the
 * DecodeError.
 *
 * @throws CacheError (from every method) where the type, the index or the query is unknown to the
 * cache, or an argument is none that it can take.
 */
export interface Reader<Q extends Queries = Queries, Mode extends ViewMode = "plain"> {
	/** The resource of that tenancy and name, or `undefined`. */
	get<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode> | undefined;
	/** The first, by ID, of the resources with exactly that key, or `undefined`. */
	get<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode> | undefined;

	/** The resources whose ID starts so, or all of the type, by ID. */
	list<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	/** The resources that have a key which starts so: by key, then by ID, each once. */
	list<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];

	/** As `list`, one at a time, of the cache as it is at the time of this call. */
	iterate<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;

	/** The resources with a key that the given one starts with: shortest first, then by ID, each once. */
	parents<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	parents<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];

	/** Asks the query of that name. */
	query<Name extends keyof Q & string>(
		name: Name,
		...args: QueryArgs<Q[Name]>
	): View<QueryResult<Q[Name]>, Mode>;
}
