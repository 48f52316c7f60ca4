import type { ID } from "@plinth/proto";
import type { ResourceName, TenancyLike } from "@plinth/resource";
import { type ListQuery, wildcard } from "../query.ts";

/**
 * Parts a key into partition, namespace and name. It sorts before every character that a part may
 * hold, so that keys order as their parts do.
 */
const separator = "\0";

/** Where a resource stands among those of its family: by partition, namespace, name. */
export function orderKey(id: Pick<ResourceName, "tenancy" | "name">): string {
	return tenancyKey(id.tenancy) + id.name;
}

function tenancyKey(tenancy: TenancyLike | undefined): string {
	return (tenancy?.partition ?? "") + separator + (tenancy?.namespace ?? "") + separator;
}

/** What all keys that a query may match begin with: as much of the query as precedes a wildcard. */
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

/** Whether the prefix says all that the query does, so that nothing is left to filter. */
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
 * The ID, if it can be stored under.
 *
 * @throws TypeError where type or name is missing: a bug of the caller.
 */
export function requireNamed(id: ID | undefined, what: string): NamedID {
	if (id?.type === undefined || id.name === "") {
		throw new TypeError(`${what} needs an id with a type and a name`);
	}
	return id as NamedID;
}
