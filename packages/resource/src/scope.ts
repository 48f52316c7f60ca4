import { Scope, type Tenancy } from "@plinth/proto";

/** A tenancy by its units; a `Tenancy` message is one. */
export type TenancyLike = Partial<Pick<Tenancy, "partition" | "namespace">>;

/** The name of the partition, and of the namespace of each partition, that is always there. */
export const defaultUnit = "default";

/** Whether resources of the scope live in a partition. */
export function hasPartition(scope: Scope): boolean {
	return scope !== Scope.CLUSTER;
}

/** Whether resources of the scope live in a namespace. */
export function hasNamespace(scope: Scope): boolean {
	return scope === Scope.NAMESPACE;
}

/** The scope as people write it, or `undefined` where it is none of the three. */
export function scopeName(scope: Scope): "cluster" | "partition" | "namespace" | undefined {
	switch (scope) {
		case Scope.CLUSTER:
			return "cluster";
		case Scope.PARTITION:
			return "partition";
		case Scope.NAMESPACE:
			return "namespace";
		default:
			return undefined;
	}
}
