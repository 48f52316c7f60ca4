import { NamespaceSchema, PartitionSchema, type Resource, TombstoneSchema } from "@plinth/proto";
import type { CopyPolicy } from "@plinth/proto/gen/plinth/meta/v1/copy_policy_pb.js";
import { checkCopyPolicy } from "./copy-policy.ts";
import { addFinalizer } from "./finalizers.ts";
import { defineType } from "./resource-type.ts";

/** The record of a deletion: `internal.v1.Tombstone`. */
export const Tombstone = defineType(TombstoneSchema);

/**
 * The finalizer of every partition and namespace. A system controller removes it once the tenancy is
 * empty.
 */
export const tenancyFinalizer = "tenancy.plinth.dev/contents";

const tenancyHooks = {
	mutate: ({ resource }: { readonly resource: Resource }) =>
		addFinalizer(resource, tenancyFinalizer),
	validate: ({ data }: { readonly data: { readonly copies?: CopyPolicy | undefined } }) =>
		checkCopyPolicy(data.copies),
};

/** The outer unit of tenancy: `tenancy.v1.Partition`. */
export const Partition = defineType(PartitionSchema, tenancyHooks);

/** The inner unit of tenancy: `tenancy.v1.Namespace`. */
export const Namespace = defineType(NamespaceSchema, tenancyHooks);
