import type { Resource } from "@plinth/proto";
import type { TenancyLike, TypeLike } from "@plinth/resource";

/** The resources of a live list. */
export interface LiveQuery {
	readonly type: TypeLike;
	/** `*` denotes all partitions, or all namespaces. */
	readonly tenancy: Required<TenancyLike>;
	/** Empty for all names. */
	readonly namePrefix: string;
}

/** A change of a live list. The key of a resource is that of its name. */
export type LiveChange =
	/** A resource is `present` if it existed when the list was opened. */
	| {
			readonly kind: "present" | "added" | "changed";
			readonly key: string;
			readonly resource: Resource;
	  }
	| { readonly kind: "deleted"; readonly key: string };
