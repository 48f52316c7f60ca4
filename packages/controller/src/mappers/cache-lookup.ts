import type { DescMessage } from "@bufbuild/protobuf";
import type { ReferenceIndex } from "@plinth/cache";
import type { ID } from "@plinth/proto";
import type { Decoded, ResourceType } from "@plinth/resource";
import type { MapperContext } from "../define/context.ts";
import { type Mapper, readOnly } from "../define/mapper.ts";
import { type IdModifier, modified } from "./id-modifier.ts";

/** Where to look up: an index of references, or the IDs of a type. */
export type Lookup<Desc extends DescMessage> = ReferenceIndex<Desc> | ResourceType<Desc>;

/**
 * Maps to the cached resource whose key is the changed resource's ID, after the modifiers; to nothing if
 * there is none. Like all lookups of mappers, it finds no copies, whatever the region of the ID.
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
 * Maps to all cached resources whose key starts with the changed resource's ID, after the modifiers. For
 * an index of references, these are all resources that refer to it.
 */
export function cacheList<Desc extends DescMessage>(
	lookup: Lookup<Desc>,
	...modifiers: readonly IdModifier[]
): Mapper {
	return lookupMapper(modifiers, ({ cache }, id) =>
		isIndex(lookup) ? cache.list(lookup, id) : cache.list(lookup, id),
	);
}

/** Maps to all cached resources whose key is a prefix of the changed resource's ID, after the modifiers. */
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
	return readOnly((context, { resource: { id } }) => {
		const requests: ID[] = [];
		if (id !== undefined) {
			for (const { resource } of find(context, local(modified(id, modifiers)))) {
				if (resource.id !== undefined) {
					requests.push(resource.id);
				}
			}
		}
		return requests;
	});
}

/** Only local resources are managed, so the ID of a copy leads to what has its name here, or refers to that. */
function local(id: ID): ID {
	if (!id.region) {
		return id;
	}
	const { region, ...rest } = id;
	return rest;
}

function isIndex<Desc extends DescMessage>(lookup: Lookup<Desc>): lookup is ReferenceIndex<Desc> {
	return "keys" in lookup;
}
