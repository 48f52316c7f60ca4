import type { AttentionCounts } from "./attention-census.ts";

/** What a storage counts of the resources of one type. */
export interface TypeStatistics extends AttentionCounts {
	readonly resources: number;
	/** Writes and deletions since the storage was opened or restored, by all servers that share it. */
	readonly writes: number;
}

/** The counts of a storage, which it maintains with each commit: reading them costs only the number of types. */
export interface StorageStatistics {
	/** The newest version that was applied. */
	readonly version: string;
	readonly resources: number;
	/** The estimated memory of the resources in bytes. */
	readonly bytes: number;
	/** The estimated memory in bytes that is kept for watches and snapshots, beyond the resources. */
	readonly retainedBytes: number;
	/** The changes that are kept for watches that resume. */
	readonly logEvents: number;
	/** The oldest version after which watches of all types can resume. */
	readonly oldestVersion: string;
	/** Open watches. */
	readonly watches: number;
	/** By type key: the types with resources, and those that were written. */
	readonly types: ReadonlyMap<string, TypeStatistics>;
}
