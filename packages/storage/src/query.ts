import type { Resource, Tenancy } from "@plinth/proto";
import type { FamilyLike } from "@plinth/resource";

/** In a query, the unit of tenancy that stands for all. */
export const wildcard = "*";

/**
 * Which resources a list or a watch is about. Group versions are no part of it: they share keys,
 * and whoever asks for one filters.
 */
export interface ListQuery {
	readonly type: FamilyLike;
	/** A unit is exact, or `*` for all. A unit that the scope of the type lacks is empty or `*`. */
	readonly tenancy: Pick<Tenancy, "partition" | "namespace">;
	/** Names that begin so; empty for all. */
	readonly namePrefix: string;
}

/** Whether the resource's name is within the query. */
export function matches(query: ListQuery, resource: Resource): boolean {
	const id = resource.id;
	return (
		id !== undefined &&
		id.type?.kind === query.type.kind &&
		id.type.group === query.type.group &&
		unitMatches(query.tenancy.partition, id.tenancy?.partition) &&
		unitMatches(query.tenancy.namespace, id.tenancy?.namespace) &&
		id.name.startsWith(query.namePrefix)
	);
}

function unitMatches(asked: string, unit = ""): boolean {
	return asked === wildcard || asked === unit;
}
