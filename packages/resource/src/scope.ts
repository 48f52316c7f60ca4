import { Scope, type Tenancy } from "@plinth/proto";

/** A tenancy by its units; a `Tenancy` message is one. */
export type TenancyLike = Partial<Pick<Tenancy, "partition" | "namespace">>;

/** The name of the partition that always exists, and of the namespace that every partition has. */
export const defaultTenancyUnit = "default";

/** Whether resources of the scope live in a partition. */
export function hasPartition(scope: Scope): boolean {
	return scope !== Scope.CLUSTER;
}

/** Whether resources of the scope live in a namespace. */
export function hasNamespace(scope: Scope): boolean {
	return scope === Scope.NAMESPACE;
}

/** The display name of the scope; `undefined` if it is none of the three. */
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
