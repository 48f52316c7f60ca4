import type { ID } from "@plinth/proto";
import type { ResourceName, TenancyLike } from "@plinth/resource";
import { type ListQuery, wildcard } from "../query.ts";

/**
 * Separates partition, namespace and name in a key. It sorts before every character that these may
 * contain, so that keys sort as their parts do.
 */
const separator = "\0";

/** The sort key of a resource within its family: partition, namespace, name. */
export function orderKey(id: Pick<ResourceName, "tenancy" | "name">): string {
	return tenancyKey(id.tenancy) + id.name;
}

function tenancyKey(tenancy: TenancyLike | undefined): string {
	return (tenancy?.partition ?? "") + separator + (tenancy?.namespace ?? "") + separator;
}

/** The common prefix of all keys that the query may match: the query up to its first wildcard. */
export function queryPrefix(query: ListQuery): string {
	const { partition, namespace } = query.tenancy;
	if (partition === wildcard) {
		return "";
	}
	if (namespace === wildcard) {
		return partition + separator;
	}
	return tenancyKey(query.tenancy) + query.namePrefix;
}

/** Whether the prefix selects exactly what the query does, so that no filter is needed. */
export function prefixSuffices(query: ListQuery): boolean {
	const { partition, namespace } = query.tenancy;
	return (
		(partition !== wildcard && namespace !== wildcard) ||
		(namespace === wildcard && query.namePrefix === "")
	);
}

/** An ID with the parts that name a resource. */
export interface NamedID extends ID {
	readonly type: NonNullable<ID["type"]>;
}

/**
 * The ID, if it names a resource.
 *
 * @throws TypeError if type or name is missing, which is a bug of the caller.
 */
export function requireNamed(id: ID | undefined, what: string): NamedID {
	if (id?.type === undefined || id.name === "") {
		throw new TypeError(`${what} needs an id with a type and a name`);
	}
	return id as NamedID;
}
