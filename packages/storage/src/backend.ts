import type { ID, Resource } from "@plinth/proto";
import type { Caller, ResourceName } from "@plinth/resource";
import type { Fence } from "@plinth/runtime";
import type { CommitResult, Mutation } from "./mutation.ts";
import type { ListQuery } from "./query.ts";
import type { Snapshot, SnapshotOwner } from "./snapshot.ts";
import type { OwnedPage } from "./state-store/owner-index.ts";
import type { TenancyUnit } from "./tenancy-census.ts";
import type { WatchEvent } from "./watch-event.ts";

/**
 * How fresh a read must be. `eventual`: no older than anything this server has returned or announced
 * before. `strong`: linearizable, no older than the call.
 */
export type Consistency = "eventual" | "strong";

/** Options of a read. */
export interface ReadOptions {
	/** `eventual` by default. */
	readonly consistency?: Consistency | undefined;
}

/** Options of a snapshot. */
export interface SnapshotOptions extends ReadOptions {
	/**
	 * The owner of a snapshot that is held for a while, until `release` is called. If absent, the
	 * snapshot is read at once and does not count as retained memory.
	 */
	readonly heldBy?: SnapshotOwner | undefined;
}

/** Options of a watch. */
export interface WatchOptions extends ReadOptions {
	/** The owner of the snapshot that the watch holds until it is read. */
	readonly heldBy?: SnapshotOwner | undefined;
	/** Skips the snapshot and sends the changes after this version. */
	readonly afterVersion?: string | undefined;
	/**
	 * Interval of bookmarks, sent when there is nothing else to send; one at the same version as the last is sent only
	 * after six intervals. No bookmarks if absent.
	 */
	readonly bookmarkIntervalMs?: number | undefined;
	/**
	 * Whether a watch with bookmarks and `afterVersion` sends the first one as soon as there is nothing else to send. It
	 * tells the consumer that the watch has resumed, and a newer version to resume after.
	 */
	readonly bookmarkOnResume?: boolean | undefined;
	/** Ends the watch: the iterator throws the signal's reason. */
	readonly signal: AbortSignal;
}

/** Options of a commit. */
export interface CommitOptions {
	/** Fails the commit as Fenced if the lease has another holder, checked atomically with the commit. */
	readonly fence?: Fence | undefined;
	/**
	 * The caller on whose behalf the commit is made, for decorators that check what it may reference. If
	 * absent, the deployment itself, which may reference everything.
	 */
	readonly caller?: Caller | undefined;
	/**
	 * Who makes the commit, for people: the subject of a caller, or the name of a controller. It is kept in memory with the
	 * recent versions of the resources, on this server only. If absent, the deployment itself: `deploymentWriter`.
	 */
	readonly writtenBy?: string | undefined;
	/** Checks everything and changes nothing. */
	readonly dryRun?: boolean | undefined;
	/**
	 * Decides the commit again if its first mutation does not meet the expected version or uid. A storage may
	 * ignore it and fail the commit instead. A decorator that changes mutations must change those of `rebase`
	 * in the same way, or leave it out.
	 */
	readonly rebase?: Rebase | undefined;
}

/**
 * Decides a commit again, on the newest resource of the name that its first mutation writes, which may not be
 * readable yet. Returns the mutations that replace those of the commit, or `undefined` if it can't decide, so
 * that the commit fails as without it. What it throws fails the commit. It may be called several times; the last
 * call counts.
 */
export type Rebase = (stored: Resource | undefined) => readonly Mutation[] | undefined;

/** A list as of one version. */
export interface Listing {
	/** Ordered by partition, namespace and name. */
	readonly resources: readonly Resource[];
	readonly version: string;
}

/**
 * The interface of every storage. Failures are the classes of errors.ts. Returned resources and events
 * are shared and immutable.
 */
export interface StorageBackend {
	/**
	 * The resource of that name, and of that uid if the ID has one.
	 *
	 * @throws NotFound; GroupVersionMismatch, which carries the stored resource; StorageUnavailable.
	 */
	read(id: ID, options?: ReadOptions): Promise<Resource>;

	/**
	 * The resource stored under the name, whatever its uid and group version, or `undefined`.
	 *
	 * @throws StorageUnavailable.
	 */
	lookup(name: ResourceName, options?: ReadOptions): Promise<Resource | undefined>;

	/**
	 * What an eventually consistent `lookup` returns, at once. Absent if the storage has to wait, or if a decorator
	 * replaces `lookup` or `read`.
	 *
	 * @throws StorageUnavailable.
	 */
	lookupNow?(name: ResourceName): Resource | undefined;

	/**
	 * The resources of a query, all at once.
	 *
	 * @throws StorageUnavailable.
	 */
	list(query: ListQuery, options?: ReadOptions): Promise<Listing>;

	/**
	 * The resources that match the query now, to be read piece by piece while commits go on: for paged
	 * lists. Taking it costs nothing; while it is held, it keeps replaced resources in memory. If held
	 * snapshots retain more than `StorageLimits.retainedBytes`, some of them end.
	 *
	 * @throws StorageUnavailable.
	 */
	snapshot(query: ListQuery, options?: SnapshotOptions): Promise<Snapshot>;

	/**
	 * The resources of all types that the incarnation `owner` owns, matched by uid; ordered by type family, partition,
	 * namespace and name. With `after` or `limit`, a part of them as they are now: there is no snapshot of all parts,
	 * but nothing can be added to what a deleted resource owned.
	 *
	 * @throws StorageUnavailable.
	 */
	listByOwner(owner: ID, options?: ReadOptions & OwnedPage): Promise<readonly Resource[]>;

	/**
	 * The number of stored resources of each type, by type key (`demo.v2.Artist`), whether or not the type is
	 * registered. The cost depends only on the number of types.
	 */
	countByType(): Promise<ReadonlyMap<string, number>>;

	/**
	 * Like `countByType`, for one namespace or partition. Types without resources there are left out.
	 *
	 * @throws StorageUnavailable.
	 */
	countByTypeIn(unit: TenancyUnit, options?: ReadOptions): Promise<ReadonlyMap<string, number>>;

	/**
	 * Sends the upserts of one snapshot, the end of the snapshot with its version, then every change; or,
	 * with `afterVersion`, every change since. Changes arrive in commit order, each once, none skipped;
	 * after an event, reads on this server return nothing older. The watch ends only with an error.
	 *
	 * A watch with an `afterVersion` that this server has not reached begins with what `catchUp` does.
	 *
	 * @throws VersionCompacted if `afterVersion` is too old, or if the storage has not reached it; WatchClosed if
	 *   the consumer fell too far behind or the storage was restored or closed; StorageUnavailable.
	 */
	watchList(query: ListQuery, options: WatchOptions): AsyncIterable<WatchEvent>;

	/**
	 * Applies all mutations, or none. Once it resolves, eventual reads on this server include it.
	 *
	 * @throws CasFailure or WrongUid, naming the mutations that failed; Fenced; Exhausted; Refused;
	 *   StorageUnavailable, after which the commit may have been applied or may still be.
	 */
	commit(mutations: readonly Mutation[], options?: CommitOptions): Promise<CommitResult>;

	/**
	 * Resolves to the newest version of the storage as of the call, once this server has applied it.
	 *
	 * @param atLeast A version that suffices: if this server has applied it, the call does not wait, and resolves to
	 *   what it has applied. Ignored if it is none.
	 * @throws StorageUnavailable.
	 */
	catchUp(signal: AbortSignal, atLeast?: string): Promise<string>;

	/** Ends all watches as WatchClosed, waits for commits in progress, and releases all resources. */
	close(): Promise<void>;
}
