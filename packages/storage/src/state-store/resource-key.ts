import type { ID } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import { type ListQuery, wildcard } from "../query.ts";
import type { VisitStep } from "./ordered-map.ts";

/**
 * Separates partition, namespace and name in a key. It sorts before every character that these may
 * contain, so that keys sort as their parts do.
 */
const separator = "\0";

/** Begins the keys of copies of other regions. It sorts behind every character of a partition, so that these keys do. */
const copyMark = "~";

/** What names a resource within its family. */
type Placed = Pick<ResourceName, "tenancy" | "name" | "region">;

/**
 * The sort key of a resource within its family:
 *
 * ```
 *              partition ␀ namespace ␀ name     resources of this region
 *   ~ region ␀ partition ␀ namespace ␀ name     copies of other regions, behind them
 * ```
 */
export function orderKey(id: Placed): string {
	return `${storedPartition(id)}${separator}${id.tenancy?.namespace ?? ""}${separator}${id.name}`;
}

/**
 * The partition, with the region of a copy in front. Indexes take it for the partition, so that copies are where no
 * query of another region looks.
 */
export function storedPartition({ tenancy, region }: Omit<Placed, "name">): string {
	const partition = tenancy?.partition ?? "";
	return region ? copyMark + region + separator + partition : partition;
}

/** The beginning of the keys of a region. */
function regionPrefix(region = ""): string {
	return region === "" || region === wildcard ? "" : copyMark + region + separator;
}

/** The common prefix of all keys that the query may match: the query up to its first wildcard. */
export function queryPrefix({ tenancy, namePrefix, region }: ListQuery): string {
	const { partition, namespace } = tenancy;
	if (region === wildcard) {
		return "";
	}
	const inRegion = regionPrefix(region);
	if (partition === wildcard) {
		return inRegion;
	}
	const inPartition = inRegion + partition + separator;
	return namespace === wildcard ? inPartition : inPartition + namespace + separator + namePrefix;
}

/** Whether the keys with the prefix, up to `queryEnd`, are exactly those that the query selects. */
export function prefixSuffices({ tenancy, namePrefix, region }: ListQuery): boolean {
	const { partition, namespace } = tenancy;
	if (region === wildcard && partition !== wildcard) {
		return false;
	}
	return (
		(partition !== wildcard && namespace !== wildcard) ||
		(namespace === wildcard && namePrefix === "")
	);
}

/** The first key behind those with the prefix of the query that it does not select; `undefined` if there are none. */
export function queryEnd({ tenancy, region = "" }: ListQuery): string | undefined {
	return tenancy.partition === wildcard && region === "" ? copyMark : undefined;
}

/** The smallest key that is greater than all keys with this one and a separator as their prefix. */
function behind(unit: string): string {
	return `${unit}\u0001`;
}

/** The smallest key that is greater than the one of that name. */
export function keyAfter(id: Placed): string {
	return orderKey(id) + separator;
}

/**
 * For any query: how to visit the keys that it selects. Each namespace costs at most two skips, to its first name with
 * the prefix and behind its last one, however many resources it has.
 */
export function stepThrough(query: ListQuery): (key: string) => VisitStep {
	return (key) => {
		/** Where the partition begins. */
		const begin = key.startsWith(copyMark) ? key.indexOf(separator) + 1 : 0;
		return (
			stepInRegion(query, key.slice(0, begin)) ??
			stepInPartition(query, key, begin) ??
			stepInNamespace(query, key, begin)
		);
	};
}

/** The step at a key of a region that the query does not select. */
function stepInRegion({ region = "" }: ListQuery, inRegion: string): VisitStep | undefined {
	const selected = regionPrefix(region);
	if (region === wildcard || inRegion === selected) {
		return undefined;
	}
	return inRegion < selected ? { skipTo: selected } : "end";
}

/** The step at a key of a partition that the query does not select. */
function stepInPartition(
	{ tenancy: { partition }, region }: ListQuery,
	key: string,
	begin: number,
): VisitStep | undefined {
	const found = key.slice(begin, key.indexOf(separator, begin));
	if (partition === wildcard || found === partition) {
		return undefined;
	}
	const inRegion = key.slice(0, begin);
	if (found < partition) {
		return { skipTo: inRegion + partition + separator };
	}
	return region === wildcard ? { skipTo: nextRegion(inRegion) } : "end";
}

function stepInNamespace(
	{ tenancy: { namespace }, namePrefix }: ListQuery,
	key: string,
	begin: number,
): VisitStep {
	const partitionEnd = key.indexOf(separator, begin);
	const namespaceEnd = key.indexOf(separator, partitionEnd + 1);
	if (namespace !== wildcard) {
		const found = key.slice(partitionEnd + 1, namespaceEnd);
		if (found < namespace) {
			return { skipTo: key.slice(0, partitionEnd + 1) + namespace + separator + namePrefix };
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
}

/** Where the keys of the next region begin, whichever it is. */
function nextRegion(inRegion: string): string {
	return inRegion === "" ? copyMark : behind(inRegion.slice(0, -1));
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
