import type { DescMessage } from "@bufbuild/protobuf";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { AnyIndex, Index } from "./index-definition.ts";
import type { ReferenceLike } from "./key.ts";
import type { Queries, QueryArgs, QueryResult, Reader, View, ViewMode } from "./reader.ts";
import { runQuery } from "./run-query.ts";
import type { Source, Sources } from "./source.ts";

/** Adds the types of their definitions to untyped sources. */
export class SourceReader<Q extends Queries, Mode extends ViewMode> implements Reader<Q, Mode> {
	readonly #sources: Sources;
	/** The last target and its source: consecutive reads mostly have the same target. */
	#target: ResourceType | AnyIndex | undefined;
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
	get(target: ResourceType | AnyIndex, first?: unknown): Decoded | undefined {
		const source = this.#sourceOf(target);
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
	list(target: ResourceType | AnyIndex, ...args: unknown[]): Decoded[] {
		return this.#sourceOf(target).list(args);
	}

	iterate<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		prefix?: ReferenceLike,
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): IteratorObject<View<Decoded<Desc>, Mode>, undefined>;
	iterate(target: ResourceType | AnyIndex, ...args: unknown[]): IteratorObject<Decoded, undefined> {
		return this.#sourceOf(target).iterate(args);
	}

	parents<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ReferenceLike,
	): View<Decoded<Desc>, Mode>[];
	parents<Desc extends DescMessage, Args extends readonly unknown[]>(
		index: Index<Desc, Args>,
		...args: Args
	): View<Decoded<Desc>, Mode>[];
	parents(target: ResourceType | AnyIndex, ...args: unknown[]): Decoded[] {
		return this.#sourceOf(target).parents(args);
	}

	query<Name extends keyof Q & string>(
		name: Name,
		...args: QueryArgs<Q[Name]>
	): View<QueryResult<Q[Name]>, Mode>;
	query(name: string, ...args: unknown[]): unknown {
		const view = new SourceReader<Queries, "plain">(this.#sources);
		return runQuery(this.#sources.queries, view, name, args);
	}

	inRegion(region: string): Reader<Q, Mode> {
		return new SourceReader<Q, Mode>(this.#sources.sourcesIn(region));
	}

	#sourceOf(target: ResourceType | AnyIndex): Source {
		if (this.#source === undefined || this.#target !== target) {
			this.#source = this.#sources.source(target);
			this.#target = target;
		}
		return this.#source;
	}
}
