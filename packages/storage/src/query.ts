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
	/**
	 * Which copies are selected. Absent or empty: no copies of other regions, and copies of other clusters only if the
	 * tenancy names their partition. A region: the copies of its resources, and nothing else. `*`: everything.
	 */
	readonly region?: string | undefined;
}

/** Whether the query selects copies of other clusters. */
export function selectsImported({
	tenancy,
	region,
}: Pick<ListQuery, "tenancy" | "region">): boolean {
	return tenancy.partition !== wildcard || region === wildcard;
}

/** Whether the resource was copied from another cluster. What an import creates around its copies was not. */
export function isImported({ id, origin }: Resource): boolean {
	return origin !== undefined && origin.uid !== "" && !id?.region;
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
		id.name.startsWith(query.namePrefix) &&
		unitMatches(query.region ?? "", id.region) &&
		(selectsImported(query) || !isImported(resource))
	);
}

function unitMatches(requested: string, unit = ""): boolean {
	return requested === wildcard || requested === unit;
}
