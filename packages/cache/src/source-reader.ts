import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { AnyIndex, Index } from "./index-definition.ts";
import type { ReferenceLike } from "./key.ts";
import type { Queries, QueryArgs, QueryResult, Reader, View, ViewMode } from "./reader.ts";
import { runQuery } from "./run-query.ts";
import type { Source, Sources } from "./source.ts";

/** Gives sources, which know no types, the types that their definitions promise. */
export class SourceReader<Q extends Queries, Mode extends ViewMode> implements Reader<Q, Mode> {
	readonly #sources: Sources;
	/** What was asked for last, and its source: readers mostly ask for the same in a row. */
	#what: ResourceType | AnyIndex | undefined;
	#source: Source | undefined;

	constructor(sources: Sources) {
		this.#sources = sources;
	}

	get<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode> | undefined;
	get<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode> | undefined;
	get(what: ResourceType | AnyIndex, first?: unknown): Decoded | undefined {
		const source = this.#sourceOf(what);
		if (source.find !== undefined) {
			return source.find(first);
		}
		// biome-ignore lint/complexity/noArguments: rest parameters would be an array on each call by ID.
		return source.get(Array.prototype.slice.call(arguments, 1));
	}

	list<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	list<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];
	list(what: ResourceType | AnyIndex, ...args: unknown[]): Decoded[] {
		return this.#sourceOf(what).list(args);
	}

	iterate<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate(what: ResourceType | AnyIndex, ...args: unknown[]): IteratorObject<Decoded, undefined> {
		return this.#sourceOf(what).iterate(args);
	}

	parents<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	parents<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];
	parents(what: ResourceType | AnyIndex, ...args: unknown[]): Decoded[] {
		return this.#sourceOf(what).parents(args);
	}

	query<Name extends keyof Q & string>(
		name: Name,
		...args: QueryArgs<Q[Name]>
	): View<QueryResult<Q[Name]>, Mode>;
	query(name: string, ...args: unknown[]): unknown {
		const view = new SourceReader<Queries, "plain">(this.#sources);
		return runQuery(this.#sources.queries, view, name, args);
	}

	#sourceOf(what: ResourceType | AnyIndex): Source {
		if (this.#source === undefined || this.#what !== what) {
			this.#source = this.#sources.source(what);
			this.#what = what;
		}
		return this.#source;
	}
}
