import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Reference } from "@plinth/proto";
import type { Decoded, ResourceType } from "@plinth/resource";
import { defineIndex, type Index } from "./index-definition.ts";
import { type ExactReference, type ReferenceLike, referenceKey } from "./key.ts";

/** An index that is read with a reference, an ID, or a part of one. */
export type ReferenceIndex<Desc extends DescMessage> = Index<Desc, [reference: ReferenceLike]>;

/** Indexes resources by their owner. The default name is `owner`. */
export function ownerIndex<Desc extends DescMessage>(
	type: ResourceType<Desc>,
): ReferenceIndex<Desc>;
export function ownerIndex<Desc extends DescMessage>(
	name: string,
	type: ResourceType<Desc>,
): ReferenceIndex<Desc>;
export function ownerIndex<Desc extends DescMessage>(
	...args: [type: ResourceType<Desc>] | [name: string, type: ResourceType<Desc>]
): ReferenceIndex<Desc> {
	const [name, type] = args.length === 1 ? ["owner", args[0]] : args;
	return referenceIndex(name, type, (item) => item.resource.owner);
}

/** Indexes resources by a single reference. */
export function referenceIndex<Desc extends DescMessage>(
	name: string,
	type: ResourceType<Desc>,
	reference: (item: Decoded<Desc>) => ExactReference | undefined,
): ReferenceIndex<Desc> {
	return defineIndex(name, type, {
		keys: (item) => {
			const target = reference(item);
			return target === undefined ? [] : [referenceKey(target)];
		},
		key: (target: ReferenceLike) => referenceKey(target),
	});
}

/** Indexes resources by each of their references. */
export function referencesIndex<Desc extends DescMessage>(
	name: string,
	type: ResourceType<Desc>,
	references: (item: Decoded<Desc>) => Iterable<ExactReference>,
): ReferenceIndex<Desc> {
	return defineIndex(name, type, {
		keys: (item) => Array.from(references(item), (target) => referenceKey(target)),
		key: (target: ReferenceLike) => referenceKey(target),
	});
}

/** `unknown` for messages with a field `bound_references`, `never` for others. */
export type HasBoundReferences<Desc extends DescMessage> =
	MessageShape<Desc> extends { readonly boundReferences: readonly Reference[] } ? unknown : never;

/**
 * Indexes computed resources by the resources that they were computed from: the field `bound_references`
 * of their data.
 */
export function boundReferencesIndex<Desc extends DescMessage>(
	name: string,
	type: ResourceType<Desc> & HasBoundReferences<Desc>,
): ReferenceIndex<Desc> {
	return referencesIndex<Desc>(name, type, (item) => boundReferencesOf(item.data));
}

function boundReferencesOf(data: object): readonly ExactReference[] {
	return "boundReferences" in data && Array.isArray(data.boundReferences)
		? data.boundReferences
		: [];
}
