import type { DescMessage } from "@bufbuild/protobuf";
import type { ReferenceIndex } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { MapperContext } from "../define/context.ts";
import { type Mapper, readsOnly } from "../define/mapper.ts";
import { type IdModifier, modified } from "./id-modifier.ts";

/** What is looked up in: an index that is asked with a reference, or the IDs of a type. */
export type Lookup<Desc extends DescMessage> = ReferenceIndex<Desc> | ResourceType<Desc>;

/**
 * To the cached resource that is found under the changed one's ID, after the modifiers; nothing
 * where none is found.
 */
export function cacheGet<Desc extends DescMessage>(
	lookup: Lookup<Desc>,
	...modifiers: readonly IdModifier[]
): Mapper {
	return lookupMapper(modifiers, ({ cache }, id) => {
		const found = isIndex(lookup) ? cache.get(lookup, id) : cache.get(lookup, id);
		return found === undefined ? [] : [found];
	});
}

/**
 * To all cached resources whose key starts with the changed one's ID, after the modifiers: all that
 * refer to it, where the index is of references.
 */
export function cacheList<Desc extends DescMessage>(
	lookup: Lookup<Desc>,
	...modifiers: readonly IdModifier[]
): Mapper {
	return lookupMapper(modifiers, ({ cache }, id) =>
		isIndex(lookup) ? cache.list(lookup, id) : cache.list(lookup, id),
	);
}

/** To all cached resources whose key the changed one's ID starts with, after the modifiers. */
export function cacheParents<Desc extends DescMessage>(
	lookup: Lookup<Desc>,
	...modifiers: readonly IdModifier[]
): Mapper {
	return lookupMapper(modifiers, ({ cache }, id) =>
		isIndex(lookup) ? cache.parents(lookup, id) : cache.parents(lookup, id),
	);
}

function lookupMapper<Desc extends DescMessage>(
	modifiers: readonly IdModifier[],
	find: (context: MapperContext, id: ID) => readonly Decoded<Desc>[],
): Mapper {
	return readsOnly((context, { resource: { id } }) => {
		const requests: ID[] = [];
		if (id !== undefined) {
			for (const { resource } of find(context, modified(id, modifiers))) {
				if (resource.id !== undefined) {
					requests.push(resource.id);
				}
			}
		}
		return requests;
	});
}

function isIndex<Desc extends DescMessage>(lookup: Lookup<Desc>): lookup is ReferenceIndex<Desc> {
	return "keys" in lookup;
}
