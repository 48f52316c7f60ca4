import type { ID } from "@plinth/proto";
import type { ResourceName, TenancyLike } from "@plinth/resource";
import { type ListQuery, wildcard } from "../query.ts";
import type { VisitStep } from "./ordered-map.ts";

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

/** The smallest key that is greater than all keys with this one and a separator as their prefix. */
function behind(unit: string): string {
	return `${unit}\u0001`;
}

/** The smallest key that is greater than the one of that name. */
export function keyAfter(id: Pick<ResourceName, "tenancy" | "name">): string {
	return orderKey(id) + separator;
}

/**
 * For a query with a wildcard and a name prefix, or a namespace of all partitions: how to visit the keys that it
 * selects. Each namespace costs at most two skips, to its first name with the prefix and behind its last one,
 * however many resources it has.
 */
export function stepThrough({ tenancy, namePrefix }: ListQuery): (key: string) => VisitStep {
	const { partition, namespace } = tenancy;
	return (key) => {
		const partitionEnd = key.indexOf(separator);
		const namespaceEnd = key.indexOf(separator, partitionEnd + 1);
		if (partition !== wildcard && key.slice(0, partitionEnd) !== partition) {
			return "end";
		}
		if (namespace !== wildcard) {
			const found = key.slice(partitionEnd + 1, namespaceEnd);
			if (found < namespace) {
				return {
					skipTo: key.slice(0, partitionEnd + 1) + namespace + separator + namePrefix,
				};
			}
			if (found > namespace) {
				return { skipTo: behind(key.slice(0, partitionEnd)) };
			}
		}
		if (key.startsWith(namePrefix, namespaceEnd + 1)) {
			return "take";
		}
		return key.slice(namespaceEnd + 1) < namePrefix
			? { skipTo: key.slice(0, namespaceEnd + 1) + namePrefix }
			: { skipTo: behind(key.slice(0, namespaceEnd)) };
	};
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
