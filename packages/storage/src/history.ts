import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import type { ReadOptions } from "./backend.ts";

/** What a version did: `unknown` if it was written before the event log begins. */
export type VersionChange = "created" | "updated" | "deleted" | "unknown";

/** One version of a resource. */
export interface StoredVersion {
	readonly change: VersionChange;
	/** The version of the resource; that of the commit that deleted it, for a deletion. */
	readonly version: string;
	/** As stored in this version; for a deletion, as last stored. Shared and immutable. */
	readonly resource: Resource;
	/** When this server has applied it, in milliseconds since 1970; absent if it was written before the event log begins. */
	readonly atMs: number | undefined;
	/** Who has committed it; absent if it was written before the event log begins, or by another server. */
	readonly writtenBy: string | undefined;
}

/** The recent versions of a name. */
export interface StoredHistory {
	/**
	 * The newest first, of all incarnations and group versions. The oldest may have been written before `sinceVersion`:
	 * then it is what was stored at that time.
	 */
	readonly versions: readonly StoredVersion[];
	/** All versions that were written after this one are known: the event log of the type begins here. */
	readonly sinceVersion: string;
	/** When that version was applied or loaded, in milliseconds since 1970. */
	readonly sinceMs: number;
}

/** Options of a read of a history. */
export interface HistoryOptions extends ReadOptions {
	/** Ends the read: it throws the signal's reason. */
	readonly signal: AbortSignal;
}

/** A storage that tells the recent versions of its resources, from the event log that it keeps for watches. */
export interface HistorySource {
	/**
	 * The recent versions of a name. It takes time in proportion to the event log of the type, and gives others their turn in
	 * between.
	 *
	 * @throws StorageUnavailable; the signal's reason.
	 */
	history(name: ResourceName, options: HistoryOptions): Promise<StoredHistory>;
}
