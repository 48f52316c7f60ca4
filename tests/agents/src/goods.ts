import { Good, privatePrefix } from "@plinth/peering/testing";
import type { Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";

/** The names that users write and delete. Exports have all but the private ones. */
export const names = ["ale", "beer", "gin", `${privatePrefix}rum`, `${privatePrefix}sake`] as const;

/** The names that only batches delete: several resources in one commit. */
export const batchNames = ["lot-1", "lot-2"] as const;

/** The prefixes that exports have. */
export const exportedPrefixes: readonly string[] = [...names, ...batchNames].filter(
	(each) => !each.startsWith(privatePrefix),
);

/** The type of goods, as requests name it. */
export const goodType = {
	group: Good.type.group,
	kind: Good.type.kind,
	groupVersion: Good.type.groupVersion,
};

/** The ID of a good of a partition. */
export function goodIdIn(partition: string, name: string) {
	return idOf(Good, name, { partition });
}

/** Whether a resource is in a partition. */
export function isIn(partition: string): (resource: Resource) => boolean {
	return ({ id }) => id?.tenancy?.partition === partition;
}
