import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import {
	type Fence,
	LocalLeases,
	type Logger,
	type Runtime,
	silentLogger,
	systemRuntime,
} from "@plinth/runtime";
import {
	assignVersion,
	type CommitBatch,
	type CommitOptions,
	type CommitResult,
	checkCommitLimits,
	checkGrowth,
	defaultStorageLimits,
	type EventStorage,
	evaluateMutations,
	Fenced,
	type HistorySource,
	LoadCapacity,
	type Mutation,
	type ReadOptions,
	StateStore,
	type StorageBackend,
	type StorageIdentity,
	type StorageLimits,
	type StorageStatistics,
	StorageUnavailable,
	WatchClosed,
	WatchDeliveries,
} from "@plinth/storage";
import {
	type BackupOptions,
	type BackupReport,
	freshIds,
	identityOf,
	type RestoreOptions,
	type RestoreReport,
} from "./backup-restore/backup-restore.ts";
import { OnlineBackups } from "./backup-restore/online-backups.ts";
import { SqliteEventStorage } from "./events/sqlite-event-storage.ts";
import { realPathOf } from "./file-access/file-system.ts";
import { GroupCommit, writeFailed } from "./group-commit/group-commit.ts";
import { load } from "./loading/load.ts";
import { StorageFileError } from "./storage-file-error.ts";
import { ReplaceFailure, StorageThread, WriteFailure } from "./thread/storage-thread.ts";

/** Options of the SQLite backend. */
export interface SqliteBackendOptions {
	/** The path of the file, which is created if missing; its directory must exist. Companion files are created next to it. */
	readonly path: string;
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
	/** The lease manager that issued the fences of commits. Without it, every fence is stale. */
	readonly leases?: Pick<LocalLeases, "isCurrent">;
	/** Limits that differ from `defaultStorageLimits`. */
	readonly limits?: Partial<StorageLimits>;
	/** Where watches wait for their turn, to be shared and measured; each storage has its own if absent. */
	readonly deliveries?: Pick<WatchDeliveries, "add">;
	/** Logs the progress of loading, and what does not keep the file from opening. */
	readonly logger?: Logger;
	/** Called after each batch of commits is written, before they resolve. Must not throw. */
	readonly onBatch?: (batch: CommitBatch) => void;
	/**
	 * Called once if a sync or a write failed, so that the content of the disk is unknown, or if the thread
	 * that owns the file has died. No commit is accepted from then on; reads are served from memory. A full
	 * disk is not such a failure. Must not throw.
	 */
	readonly onFailed?: (failure: Error) => void;
	/** Aborts opening, which rejects with the signal's reason; has no effect once it is open. */
	readonly signal?: AbortSignal;
}

/** A storage in a SQLite file, which can be backed up and restored while it is open. */
export interface SqliteBackend extends StorageBackend, HistorySource {
	/** The identity of the storage; `restore` changes it. */
	readonly identity: StorageIdentity;
	/**
	 * The rows of events, in the same file. A backup does not contain them, and a restored storage starts without any:
	 * `restore` ends what follows them as StorageUnavailable.
	 */
	readonly events: EventStorage;

	/** What it counts, also once it is closed. */
	statistics(): StorageStatistics;

	/**
	 * Backs the storage up while commits continue. The backup has the state as of one version, the newest
	 * when it is complete. Only one backup or restore can run at a time.
	 *
	 * @throws StorageFileError; StorageUnavailable if the storage is closed meanwhile; the signal's reason.
	 */
	backup(options: BackupOptions): Promise<BackupReport>;

	/**
	 * Replaces the storage by a backup. The whole backup is checked and loaded first, while the storage stays
	 * in use, so that both states are in memory. Then the storage is replaced between two commits: all
	 * watches end as WatchClosed, `identity` changes, and all resources get a version later than any ever
	 * issued. Waiting commits are decided after that. The replaced file is kept under another name.
	 *
	 * @throws StorageFileError, after which the storage stays in use; StorageUnavailable if it is closed meanwhile
	 *   or has to be opened again; the signal's reason.
	 */
	restore(options: RestoreOptions): Promise<RestoreReport>;
}

/**
 * Opens a storage in a SQLite file and loads it. Reads and watches are served from memory; a commit resolves
 * when it is on disk.
 *
 * @throws StorageFileError if the file is open elsewhere, foreign or damaged; it is left unchanged.
 *   StateTooLarge if it needs more memory than the limit or the heap allows.
 */
export async function createSqliteBackend(options: SqliteBackendOptions): Promise<SqliteBackend> {
	const { runtime = systemRuntime, leases = new LocalLeases(), logger = silentLogger } = options;
	const limits = { ...defaultStorageLimits, ...options.limits };
	const { signal, deliveries = new WatchDeliveries(runtime) } = options;
	const store = new StateStore(runtime, limits, deliveries);
	signal?.throwIfAborted();
	const path = realPathOf(options.path);
	const thread = new StorageThread({ path, mode: "own", fresh: freshIds(runtime) });
	try {
		const { identity } = await load(thread, store, path, {
			clock: runtime.clock,
			logger,
			capacity: new LoadCapacity(limits),
			...(signal && { signal }),
		});
		if (identity === undefined) {
			throw new Error("a storage that is open for writing has an identity");
		}
		await deleteExpiredEvents(thread, Math.floor(runtime.clock.now()), { path, logger });
		const backups = new OnlineBackups({ path, thread, runtime, limits, deliveries, logger });
		const { onBatch, onFailed } = options;
		return new Backend({
			...{ store, thread, backups, identity, leases, limits, runtime, logger },
			...(onBatch && { onBatch }),
			...(onFailed && { onFailed }),
		});
	} catch (error) {
		await thread.abandon();
		throw error;
	}
}

/**
 * Deletes events that expired before the file was opened. Neither a full disk nor a table of events that can't be written
 * is a reason not to open it.
 *
 * @throws StorageFileError
 */
async function deleteExpiredEvents(
	thread: StorageThread,
	nowMs: number,
	{ path, logger }: { readonly path: string; readonly logger: Logger },
): Promise<void> {
	try {
		await thread.writeEvents({ nowMs, expiresMs: nowMs, rows: [] });
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		if (error instanceof WriteFailure && error.eventTable) {
			logger.warn(
				{ path, why },
				"expired events can't be deleted: the table of events can't be written",
			);
		} else if (!(error instanceof WriteFailure && error.diskFull)) {
			throw new StorageFileError(path, "unreachable", `expired events can't be deleted: ${why}`, {
				cause: error,
			});
		}
	}
}

interface Parts {
	readonly store: StateStore;
	readonly thread: StorageThread;
	readonly backups: OnlineBackups;
	readonly identity: StorageIdentity;
	readonly leases: Pick<LocalLeases, "isCurrent">;
	readonly limits: StorageLimits;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly onBatch?: (batch: CommitBatch) => void;
	readonly onFailed?: (failure: Error) => void;
}

class Backend implements SqliteBackend {
	readonly #parts: Parts;
	readonly #groups: GroupCommit;
	readonly #events: SqliteEventStorage;
	/** The current state. */
	#store: StateStore;
	#identity: StorageIdentity;
	#closing: Promise<void> | undefined;

	constructor(parts: Parts) {
		this.#parts = parts;
		this.#store = parts.store;
		this.#identity = identityOf(parts.identity);
		this.#groups = new GroupCommit({
			store: () => this.#store,
			scheduler: parts.runtime.scheduler,
			clock: parts.runtime.clock,
			...(parts.onBatch && { onBatch: parts.onBatch }),
			limits: parts.limits,
			isCurrent: (fence) => parts.leases.isCurrent(fence),
			write: (revision, rows) => parts.thread.write(revision, rows),
			log: parts.logger,
			...(parts.onFailed && { onBroken: parts.onFailed }),
		});
		this.#events = new SqliteEventStorage({
			thread: parts.thread,
			groups: this.#groups,
			clock: parts.runtime.clock,
		});
		// These may happen while no commit is in progress, and must not be discovered by the next commit.
		void parts.thread.diskFailed.then((error) => this.#groups.break(writeFailed(error.message)));
		void parts.thread.died.then((error) =>
			this.#groups.break(
				new StorageUnavailable(
					`the storage thread has died, and no commit is accepted until the storage is opened again: ${error.message}`,
				),
			),
		);
	}

	get identity(): StorageIdentity {
		return this.#identity;
	}

	get events(): EventStorage {
		return this.#events;
	}

	read: StorageBackend["read"] = async (id, options) => (await this.#state(options)).read(id);

	lookup: StorageBackend["lookup"] = async (name, options) =>
		(await this.#state(options)).lookup(name);

	lookupNow(name: ResourceName): Resource | undefined {
		this.#assertOpen();
		return this.#store.lookup(name);
	}

	list: StorageBackend["list"] = async (query, options) => {
		const snapshot = (await this.#state(options)).snapshot(query);
		return { resources: [...snapshot.resources()], version: snapshot.version };
	};

	snapshot: StorageBackend["snapshot"] = async (query, options) =>
		(await this.#state(options)).snapshot(query, options?.heldBy);

	listByOwner: StorageBackend["listByOwner"] = async (owner, options) =>
		(await this.#state(options)).listByOwner(owner, options);

	countByType: StorageBackend["countByType"] = async () => (await this.#state()).countByType();

	countByTypeIn: StorageBackend["countByTypeIn"] = async (unit, options) =>
		(await this.#state(options)).countByTypeIn(unit);

	history: HistorySource["history"] = async (name, options) =>
		(await this.#state(options)).history(name, options.signal);

	watchList: StorageBackend["watchList"] = (query, options) =>
		this.#store.watch(query, options, (signal) => this.catchUp(signal));

	async commit(
		mutations: readonly Mutation[],
		{ fence, dryRun, rebase, writtenBy }: CommitOptions = {},
	): Promise<CommitResult> {
		this.#assertOpen();
		checkCommitLimits(mutations, this.#parts.limits);
		return dryRun
			? this.#dryRun(mutations, fence)
			: this.#groups.commit(mutations, { fence, rebase, writtenBy });
	}

	statistics(): StorageStatistics {
		return this.#store.statistics();
	}

	async catchUp(signal: AbortSignal): Promise<string> {
		signal.throwIfAborted();
		return (await this.#state({ consistency: "strong" })).version;
	}

	async backup(options: BackupOptions): Promise<BackupReport> {
		this.#assertOpen();
		return this.#parts.backups.backup(options);
	}

	async restore(options: RestoreOptions): Promise<RestoreReport> {
		this.#assertOpen();
		const replaced = () => ({ revision: this.#store.revision, identity: this.#identity });
		return this.#parts.backups.restore(options, replaced, (swap) =>
			this.#groups.alone(async () => {
				try {
					const { store, report } = await swap(this.#store.revision);
					this.#restored(store, report);
					return report;
				} catch (error) {
					throw this.#swapFailure(error);
				}
			}),
		);
	}

	/** The error of a failed swap, for the caller of the restore: the storage stays in use, or has to be opened again. */
	#swapFailure(error: unknown): unknown {
		if (!(error instanceof ReplaceFailure)) {
			return error;
		}
		if (error.undone) {
			return new StorageUnavailable(
				`the storage was not restored, and stays in use: ${error.message}`,
			);
		}
		const failure = new StorageUnavailable(
			`the storage is being replaced, and accepts no commits until it is opened again, which completes the restore: ${error.message}`,
		);
		this.#groups.break(failure);
		return failure;
	}

	/** Switches to the restored state in one synchronous step, so that no reader sees both. */
	#restored(store: StateStore, { identity, version }: RestoreReport): void {
		const former = this.#store;
		this.#store = store;
		this.#identity = identity;
		this.#events.replaced();
		former.close(
			new WatchClosed(
				`the storage was restored from a backup, at version ${version}; discard the state built from the watch and watch again`,
			),
		);
	}

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		const { backups, thread } = this.#parts;
		this.#events.close();
		await backups.close();
		await this.#groups.settled();
		this.#store.close(new WatchClosed("the storage was closed"));
		await thread.close();
	}

	/** A dry run is decided against the state that can be read now. */
	#dryRun(mutations: readonly Mutation[], fence: Fence | undefined): CommitResult {
		const { leases, limits } = this.#parts;
		const store = this.#store;
		if (fence !== undefined && !leases.isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		const effects = evaluateMutations(mutations, store);
		checkGrowth(store.bytes, effects, limits);
		return assignVersion(effects, store.version).commit;
	}

	/**
	 * The state for reads. There are no commits of other processes; a strong read waits for the earlier
	 * commits of this one.
	 */
	async #state(options: ReadOptions = {}): Promise<StateStore> {
		this.#assertOpen();
		if (options.consistency === "strong") {
			await this.#groups.settled();
		}
		return this.#store;
	}

	#assertOpen(): void {
		if (this.#closing !== undefined) {
			throw new StorageUnavailable("the storage is closed");
		}
	}
}
