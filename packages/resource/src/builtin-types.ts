import { NamespaceSchema, PartitionSchema, TombstoneSchema } from "@plinth/proto";
import { defineType } from "./resource-type.ts";

/** The record of a deletion: `internal.v1.Tombstone`. */
export const Tombstone = defineType(TombstoneSchema);

/** The outer unit of tenancy: `tenancy.v1.Partition`. */
export const Partition = defineType(PartitionSchema);

/** The inner unit of tenancy: `tenancy.v1.Namespace`. */
export const Namespace = defineType(NamespaceSchema);
