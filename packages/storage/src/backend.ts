import type { ID, Resource } from "@plinth/proto";
import type { Caller } from "@plinth/resource";
import type { Fence } from "@plinth/runtime";
import type { Commit, Mutation } from "./mutation.ts";
import type { ListQuery } from "./query.ts";
import type { Snapshot, SnapshotOwner } from "./snapshot.ts";
import type { TenancyUnit } from "./tenancy-census.ts";
import type { WatchEvent } from "./watch-event.ts";

/**
 * How fresh an answer must be. `eventual`: nothing older than what this server returned or announced
 * before. `strong`: linearizable, not older than the call.
 */
export type Consistency = "eventual" | "strong";

/** Options of a read. */
export interface ReadOptions {
	/** `eventual` where it is absent. */
	readonly consistency?: Consistency | undefined;
}

/** Options of a snapshot. */
export interface SnapshotOptions extends ReadOptions {
	/**
	 * Whoever takes the snapshot will hold it for a while, and calls `release` then. Absent: it is
	 * read at once, and does not count into what is retained.
	 */
	readonly heldBy?: SnapshotOwner | undefined;
}

/** Options of a watch. */
export interface WatchOptions extends ReadOptions {
	/** Who reads the watch, and holds its snapshot until that is read. */
	readonly heldBy?: SnapshotOwner | undefined;
	/** Skip the snapshot, and send what came after this version. */
	readonly afterVersion?: string | undefined;
	/** Send a bookmark this often, when there is nothing else to send. Absent: none. */
	readonly bookmarkEveryMs?: number | undefined;
	/** Ends the watch: the iterator throws the signal's reason. */
	readonly signal: AbortSignal;
}

/** Options of a commit. */
export interface CommitOptions {
	/** Fail as Fenced where the lease has another holder, decided with the commit. */
	readonly fence?: Fence | undefined;
	/**
	 * On whose behalf the commit is made, for decorators that decide what it may reference. Absent: on that
	 * of the deployment itself, which may reference everything.
	 */
	readonly caller?: Caller | undefined;
	/** Check everything and change nothing. */
	readonly dryRun?: boolean | undefined;
}

/** A list as of one version. */
export interface Listing {
	/** Ordered by partition, namespace and name. */
	readonly resources: readonly Resource[];
	readonly version: string;
}

/**
 * Where resources are stored. Failures are the classes of errors.ts. Whatever is returned or
 * announced is shared and immutable.
 */
export interface StorageBackend {
	/**
	 * The resource of that name, and of that uid where the ID has one.
	 *
	 * @throws NotFound; GroupVersionMismatch, which carries the stored resource; Inconsistent.
	 */
	read(id: ID, options?: ReadOptions): Promise<Resource>;

	/**
	 * The resources of a query, all at once.
	 *
	 * @throws Inconsistent.
	 */
	list(query: ListQuery, options?: ReadOptions): Promise<Listing>;

	/**
	 * What the query matches now, to be read piece by piece while commits go on: for paged lists. It
	 * costs nothing to take, and keeps what has been replaced since alive for as long as it is held.
	 * Where held snapshots retain more than `StorageLimits.retainedBytes`, some of them end.
	 *
	 * @throws Inconsistent.
	 */
	snapshot(query: ListQuery, options?: SnapshotOptions): Promise<Snapshot>;

	/** The resources of all types whose owner is the very incarnation that `owner` names, by uid. */
	listByOwner(owner: ID): Promise<readonly Resource[]>;

	/**
	 * How many resources are stored of each type, by its key (`demo.v2.Artist`), whether or not the type is
	 * registered. The cost depends on the number of types alone.
	 */
	countByType(): Promise<ReadonlyMap<string, number>>;

	/**
	 * The same of one namespace or partition. A type that is not in the answer has no resource there.
	 *
	 * @throws Inconsistent.
	 */
	countByTypeIn(unit: TenancyUnit, options?: ReadOptions): Promise<ReadonlyMap<string, number>>;

	/**
	 * Upserts of one snapshot, the end of the snapshot with its version, then every change; or, with
	 * `afterVersion`, every change since. In commit order, each once, none skipped; after an event, a
	 * read on this server returns nothing older. Never ends by itself but by an error.
	 *
	 * @throws VersionCompacted where `afterVersion` is too old or not reached yet; WatchClosed where
	 *   the consumer fell too far behind or the storage was restored or closed; Inconsistent.
	 */
	watchList(query: ListQuery, options: WatchOptions): AsyncIterable<WatchEvent>;

	/**
	 * Applies all mutations, or none. When it has resolved, eventual reads on this server include it.
	 *
	 * @throws CasFailure or WrongUid, naming the mutations that failed; Fenced; Exhausted; Refused;
	 *   Inconsistent, after which the commit may have landed or may still land.
	 */
	commit(mutations: readonly Mutation[], options?: CommitOptions): Promise<Commit>;

	/**
	 * Resolves to the newest version of the storage as of the call, once it is applied here.
	 *
	 * @throws Inconsistent.
	 */
	catchUp(signal: AbortSignal): Promise<string>;

	/** Ends all watches as WatchClosed, lets commits that are under way finish, and lets go of everything. */
	close(): Promise<void>;
}
