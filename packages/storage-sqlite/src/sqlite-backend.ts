import {
	type Fence,
	LocalLeases,
	type Logger,
	type Runtime,
	silentLogger,
	systemRuntime,
} from "@plinth/runtime";
import {
	type Commit,
	type CommitOptions,
	checkCommitLimits,
	checkGrowth,
	defaultLimits,
	evaluate,
	Fenced,
	Inconsistent,
	type Mutation,
	type ReadOptions,
	StateStore,
	type StorageBackend,
	type StorageLimits,
	stamp,
	WatchClosed,
} from "@plinth/storage";
import { GroupCommit } from "./group-commit.ts";
import { load } from "./load.ts";
import { StorageThread } from "./storage-thread.ts";

/** Options of the SQLite backend. */
export interface SqliteBackendOptions {
	/** The file, which is made where it is missing; its directory must exist. Others appear beside it. */
	readonly path: string;
	/** The real world where it is absent. */
	readonly runtime?: Runtime;
	/** Whose fences commits may carry. Without it, every fence is out of date. */
	readonly leases?: Pick<LocalLeases, "isCurrent">;
	/** Limits that differ from `defaultLimits`. */
	readonly limits?: Partial<StorageLimits>;
	/** Hears about the progress of loading. */
	readonly log?: Logger;
}

/**
 * Opens a storage in a SQLite file, and loads it. Reads and watches are answered from memory; a
 * commit has resolved when it is on disk.
 *
 * @throws StorageFileError where the file is open elsewhere, foreign or damaged; it is left as it is.
 */
export async function createSqliteBackend(options: SqliteBackendOptions): Promise<StorageBackend> {
	const { path, runtime = systemRuntime, leases = new LocalLeases(), log = silentLogger } = options;
	const limits = { ...defaultLimits, ...options.limits };
	const store = new StateStore(runtime, limits);
	const thread = new StorageThread(path);
	try {
		await load(thread, store, path, { clock: runtime.clock, log });
	} catch (error) {
		await thread.close();
		throw error;
	}
	return new SqliteBackend({ store, thread, leases, limits, runtime });
}

interface Parts {
	readonly store: StateStore;
	readonly thread: StorageThread;
	readonly leases: Pick<LocalLeases, "isCurrent">;
	readonly limits: StorageLimits;
	readonly runtime: Runtime;
}

class SqliteBackend implements StorageBackend {
	readonly #parts: Parts;
	readonly #groups: GroupCommit;
	#closing: Promise<void> | undefined;

	constructor(parts: Parts) {
		this.#parts = parts;
		this.#groups = new GroupCommit({
			store: parts.store,
			scheduler: parts.runtime.scheduler,
			limits: parts.limits,
			isCurrent: (fence) => parts.leases.isCurrent(fence),
			write: (revision, rows) => parts.thread.write(revision, rows),
		});
	}

	read: StorageBackend["read"] = async (id, options) => (await this.#state(options)).read(id);

	list: StorageBackend["list"] = async (query, options) => {
		const snapshot = (await this.#state(options)).snapshot(query);
		return { resources: [...snapshot.resources()], version: snapshot.version };
	};

	snapshot: StorageBackend["snapshot"] = async (query, options) =>
		(await this.#state(options)).snapshot(query);

	listByOwner: StorageBackend["listByOwner"] = async (owner) =>
		(await this.#state()).listByOwner(owner);

	countByType: StorageBackend["countByType"] = async () => (await this.#state()).countByType();

	watchList: StorageBackend["watchList"] = (query, options) =>
		this.#parts.store.watch(query, options, (signal) => this.catchUp(signal));

	async commit(
		mutations: readonly Mutation[],
		{ fence, dryRun }: CommitOptions = {},
	): Promise<Commit> {
		this.#assertOpen();
		checkCommitLimits(mutations, this.#parts.limits);
		return dryRun ? this.#rehearse(mutations, fence) : this.#groups.commit(mutations, fence);
	}

	async catchUp(signal: AbortSignal): Promise<string> {
		signal.throwIfAborted();
		return (await this.#state({ consistency: "strong" })).version;
	}

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		const { store, thread } = this.#parts;
		await this.#groups.settled();
		store.close(new WatchClosed("the storage was closed"));
		await thread.close();
	}

	/** A dry run is decided by what can be read now. */
	#rehearse(mutations: readonly Mutation[], fence: Fence | undefined): Commit {
		const { store, leases, limits } = this.#parts;
		if (fence !== undefined && !leases.isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
		const steps = evaluate(mutations, store);
		checkGrowth(store.bytes, steps, limits);
		return stamp(steps, store.version).commit;
	}

	/**
	 * What reads are answered from. No commit of another process can be newer; a strong read waits for
	 * those of this one that came before it.
	 */
	async #state(options: ReadOptions = {}): Promise<StateStore> {
		this.#assertOpen();
		if (options.consistency === "strong") {
			await this.#groups.settled();
		}
		return this.#parts.store;
	}

	#assertOpen(): void {
		if (this.#closing !== undefined) {
			throw new Inconsistent("the storage is closed");
		}
	}
}
