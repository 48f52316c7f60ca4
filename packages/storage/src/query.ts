import type { Resource, Tenancy } from "@plinth/proto";
import type { FamilyLike } from "@plinth/resource";

/** In a query, matches all partitions or namespaces. */
export const wildcard = "*";

/**
 * Selects the resources of a list or a watch. It does not select a group version: all versions of a type
 * share keys, and callers that want one version filter the result.
 */
export interface ListQuery {
	readonly type: FamilyLike;
	/** Each is an exact name, or `*` for all; empty or `*` if the scope of the type lacks it. */
	readonly tenancy: Pick<Tenancy, "partition" | "namespace">;
	/** The prefix of the names; empty for all. */
	readonly namePrefix: string;
}

/** Whether the query selects the resource. */
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

function unitMatches(requested: string, unit = ""): boolean {
	return requested === wildcard || requested === unit;
}
