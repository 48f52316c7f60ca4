import { clone } from "@bufbuild/protobuf";
import { cloneResource } from "@plinth/proto";
import { type Decoded, DecodeError, type ResourceType } from "@plinth/resource";
import type { Cache } from "./cache.ts";
import type { Queries, Reader } from "./reader.ts";
import type { Source, Sources } from "./source.ts";
import { SourceReader } from "./source-reader.ts";
import { Entry } from "./tree/node.ts";

/**
 * A view of the cache for code that may modify the items: each item is a copy that belongs to the caller;
 * iterators copy one item at a time. Queries run on this view, so that they read copies, too.
 */
export function cloningView<Q extends Queries>(cache: Cache<Q>): Reader<Q> {
	return new SourceReader<Q, "plain">(cloningSources(cache));
}

function cloningSources(sources: Sources): Sources {
	return {
		queries: sources.queries,
		source: (what) => cloningSource(sources.source(what), "keys" in what ? what.type : what),
		sourcesIn: (region) => cloningSources(sources.sourcesIn(region)),
	};
}

function cloningSource(source: Source, type: ResourceType): Source {
	const copy = (item: Decoded) => cloneItem(type, item);
	const { find } = source;
	return {
		...(find && {
			find: (id: unknown) => {
				const item = find.call(source, id);
				return item && copy(item);
			},
		}),
		get: (args) => {
			const item = source.get(args);
			return item && copy(item);
		},
		list: (args) => source.list(args).map(copy),
		iterate: (args) => source.iterate(args).map(copy),
		parents: (args) => source.parents(args).map(copy),
	};
}

function cloneItem(type: ResourceType, item: Decoded): Decoded {
	const resource = cloneResource(item.resource);
	try {
		const { data } = item;
		return { resource, data: type.hooks.clone?.(data) ?? clone(type.schema, data) };
	} catch (error) {
		if (error instanceof DecodeError) {
			// Reading its data throws the same error.
			return new Entry(type, resource);
		}
		throw error;
	}
}
