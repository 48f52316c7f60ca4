import { type Fence, LocalLeases, type Runtime, systemRuntime } from "@plinth/runtime";
import type { CommitOptions, StorageBackend } from "./backend.ts";
import { assignVersion, changesNothing } from "./compare-and-swap.ts";
import { decideCommit } from "./decide-commit.ts";
import { Fenced, StorageUnavailable, WatchClosed } from "./errors.ts";
import type { HistorySource } from "./history.ts";
import {
	checkCommitLimits,
	checkGrowth,
	defaultStorageLimits,
	type StorageLimits,
} from "./limits.ts";
import type { CommitResult, Mutation } from "./mutation.ts";
import { StateStore } from "./state-store/state-store.ts";
import type { StorageStatistics } from "./storage-statistics.ts";
import type { WatchDeliveries } from "./watch/watch-deliveries.ts";

/** Options of the in-memory backend. */
export interface MemoryBackendOptions {
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
	/** The lease manager that issued the fences of commits. Without it, every fence is stale. */
	readonly leases?: Pick<LocalLeases, "isCurrent">;
	/** Limits that differ from `defaultStorageLimits`. */
	readonly limits?: Partial<StorageLimits>;
	/**
	 * The version before the first commit; 0 if absent. A storage that takes the place of a lost one begins beyond the
	 * versions of that one, so that readers who name one of those begin again, instead of waiting for it.
	 */
	readonly afterVersion?: number;
	/** Where watches wait for their turn, to be shared and measured; each storage has its own if absent. */
	readonly deliveries?: Pick<WatchDeliveries, "add">;
}

/** A storage in memory only. */
export interface MemoryBackend extends StorageBackend, HistorySource {
	/** What it counts, also once it is closed. */
	statistics(): StorageStatistics;
}

/** A storage in memory only: for tests, and for servers whose state may be lost. */
export function createMemoryBackend(options: MemoryBackendOptions = {}): MemoryBackend {
	const { runtime = systemRuntime, leases = new LocalLeases(), deliveries } = options;
	const limits = { ...defaultStorageLimits, ...options.limits };
	const store = new StateStore(runtime, limits, deliveries);
	store.begin(options.afterVersion ?? 0);
	let closed = false;

	function open(): StateStore {
		if (closed) {
			throw new StorageUnavailable("the storage is closed");
		}
		return store;
	}

	function checkFence(fence: Fence | undefined): void {
		if (fence !== undefined && !leases.isCurrent(fence)) {
			throw new Fenced(fence.lease);
		}
	}

	function commit(
		mutations: readonly Mutation[],
		{ fence, dryRun, rebase, writtenBy }: CommitOptions,
	): CommitResult {
		open();
		checkCommitLimits(mutations, limits);
		checkFence(fence);
		const { effects } = decideCommit(mutations, rebase, store, limits);
		checkGrowth(store.bytes, effects, limits);
		if (dryRun) {
			return assignVersion(effects, store.version).commit;
		}
		if (changesNothing(effects)) {
			return assignVersion(effects, "").commit;
		}
		const revision = store.revision + 1;
		const stamped = assignVersion(effects, String(revision), writtenBy);
		store.apply(revision, stamped.changes);
		return stamped.commit;
	}

	// The memory is always current: strong reads have nothing to wait for.
	return {
		read: async (id) => open().read(id),
		lookup: async (name) => open().lookup(name),
		lookupNow: (name) => open().lookup(name),
		list: async (query) => {
			const snapshot = open().snapshot(query);
			return { resources: [...snapshot.resources()], version: snapshot.version };
		},
		snapshot: async (query, readOptions) => open().snapshot(query, readOptions?.heldBy),
		listByOwner: async (owner, options) => open().listByOwner(owner, options),
		countByType: async () => open().countByType(),
		countByTypeIn: async (unit) => open().countByTypeIn(unit),
		history: async (name, { signal }) => open().history(name, signal),
		watchList: (query, watchOptions) => store.watch(query, watchOptions, async () => {}),
		commit: async (mutations, commitOptions = {}) => commit(mutations, commitOptions),
		catchUp: async () => open().version,
		statistics: () => store.statistics(),
		close: async () => {
			closed = true;
			store.close(new WatchClosed("the storage was closed"));
		},
	};
}
