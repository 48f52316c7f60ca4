import type { DescMessage } from "@bufbuild/protobuf";
import type { ID } from "@plinth/proto";
import { type Decoded, familyKey, type ResourceType } from "@plinth/resource";
import type { MapperContext } from "../define/context.ts";
import { isReadOnly, type Mapper, readOnly } from "../define/mapper.ts";

/** Combines the results of several mappers. If one fails, there are no requests at all. */
export function merge<Desc extends DescMessage>(...mappers: readonly Mapper<Desc>[]): Mapper<Desc> {
	const merged: Mapper<Desc> = async (context, changed) => {
		const results = await Promise.all(mappers.map(async (map) => map(context, changed)));
		return results.flatMap((ids) => [...ids]);
	};
	return readsOnlyIf(mappers, merged);
}

/**
 * Maps through intermediate resources: the IDs returned by `first` are looked up in the cache under
 * `type`, and each resource found is mapped by `then`. If one fails, there are no requests at all.
 */
export function chain<First extends DescMessage, Between extends DescMessage>(
	first: Mapper<First>,
	type: ResourceType<Between>,
	then: Mapper<Between>,
): Mapper<First> {
	const lookUp: Transformation<First, Between> = async (context, changed) => {
		const found: Decoded<Between>[] = [];
		for (const id of await first(context, changed)) {
			const isBetween = id.type !== undefined && familyKey(id.type) === type.family;
			const between = isBetween ? context.cache.get(type, id) : undefined;
			if (between !== undefined) {
				found.push(between);
			}
		}
		return found;
	};
	return transform(readsOnlyIf([first], lookUp), then);
}

/** Turns a changed resource into others that are mapped instead. */
export type Transformation<From extends DescMessage, To extends DescMessage> = (
	context: MapperContext,
	changed: Decoded<From>,
) => Iterable<Decoded<To>> | Promise<Iterable<Decoded<To>>>;

/**
 * Applies `map` to the resources that `into` returns for the changed one. If one fails, there are no
 * requests at all.
 */
export function transform<From extends DescMessage, To extends DescMessage>(
	into: Transformation<From, To>,
	map: Mapper<To>,
): Mapper<From> {
	const transformed: Mapper<From> = async (context, changed) => {
		const requests: ID[] = [];
		for (const other of await into(context, changed)) {
			requests.push(...(await map(context, other)));
		}
		return requests;
	};
	return readsOnlyIf([into, map], transformed);
}

function readsOnlyIf<Combined extends object>(
	parts: readonly object[],
	combined: Combined,
): Combined {
	return parts.every(isReadOnly) ? readOnly(combined) : combined;
}
