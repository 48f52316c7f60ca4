import type { Logger, Runtime } from "@plinth/runtime";
import {
	LoadCapacity,
	StateStore,
	type StorageLimits,
	StorageUnavailable,
	type WatchDeliveries,
} from "@plinth/storage";
import { realPathOf } from "../file-access/file-system.ts";
import { load } from "../loading/load.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { StorageThread } from "../thread/storage-thread.ts";
import {
	type BackupOptions,
	type BackupReport,
	backupReport,
	type RestoreOptions,
	type RestoreReport,
	restoreReport,
	revisionOf,
	timeAndIds,
} from "./backup-restore.ts";
import { inFileThread } from "./file-thread.ts";
import type { Replaced } from "./restore-build.ts";
import { removeLeftovers, restoringPath } from "./restore-swap.ts";

/** The dependencies of backups and restores of an open storage. */
export interface OnlineBackupsContext {
	/** See `realPathOf`. */
	readonly path: string;
	readonly thread: StorageThread;
	readonly runtime: Runtime;
	readonly limits: StorageLimits;
	readonly deliveries: Pick<WatchDeliveries, "add">;
	readonly logger: Logger;
}

/** The state that a restore has loaded, which replaces that of the storage. */
export interface Restored {
	readonly store: StateStore;
	readonly report: RestoreReport;
}

/** Replaces the file, unless the storage has reached the revision of the new one. */
export type Swap = (revision: number) => Promise<Restored>;

/** Backups and restores of an open storage, one at a time. */
export class OnlineBackups {
	readonly #context: OnlineBackupsContext;
	readonly #closing = new AbortController();
	#job: { readonly what: string; readonly ended: Promise<unknown> } | undefined;

	constructor(context: OnlineBackupsContext) {
		this.#context = context;
	}

	/** See `SqliteBackend.backup`. */
	backup(options: BackupOptions): Promise<BackupReport> {
		return this.#exclusively("backup", options.signal, async (signal) => {
			const to = realPathOf(options.to);
			const { thread, runtime } = this.#context;
			const progress = (resources: number, total: number) =>
				options.progress?.({ resources, total });
			const outcome = await thread.backup({ to, ...timeAndIds(runtime) }, signal, progress);
			switch (outcome.kind) {
				case "done":
					return backupReport(to, outcome.result);
				case "failed":
					throw new StorageFileError(outcome.path, outcome.problem, outcome.reason);
				case "aborted":
					throw signal.reason ?? new StorageUnavailable("the backup was interrupted");
			}
		});
	}

	/**
	 * See `SqliteBackend.restore`.
	 *
	 * @param replaced Returns the current revision and identity of the storage.
	 * @param exchange Calls the swap while no commit is in progress, and continues with its result.
	 */
	restore(
		options: RestoreOptions,
		replaced: () => Replaced,
		exchange: (swap: Swap) => Promise<RestoreReport>,
	): Promise<RestoreReport> {
		return this.#exclusively("restore", options.signal, async (signal) => {
			const { path, thread, runtime, logger, limits, deliveries } = this.#context;
			const { progress } = options;
			const now = timeAndIds(runtime);
			const order = {
				path,
				from: realPathOf(options.from),
				newestRevision: revisionOf(options.newestVersion),
				replaced: replaced(),
				...now,
			};
			try {
				const job = { kind: "build", ...order } as const;
				const built = await inFileThread(job, { signal, ...(progress && { progress }) });
				const store = new StateStore(runtime, limits, deliveries);
				const { fresh } = now;
				const reading = new StorageThread({ path: restoringPath(path), mode: "read", fresh });
				try {
					const capacity = new LoadCapacity(limits);
					await load(reading, store, path, { clock: runtime.clock, logger, capacity, signal });
				} finally {
					await reading.abandon();
				}
				return await exchange(async (revision) => {
					signal.throwIfAborted();
					if (revision >= built.head.revision) {
						throw new StorageFileError(
							path,
							"clock",
							`not restored: commits have reached version ${revision} meanwhile, which is past version ${built.head.revision} derived from the clock. Set the clock, and try again`,
						);
					}
					return { store, report: restoreReport({ ...built, replaced: await thread.replace() }) };
				});
			} finally {
				removeLeftovers(path);
			}
		});
	}

	/** Aborts the current backup or restore. */
	async close(): Promise<void> {
		this.#closing.abort(new StorageUnavailable("the storage was closed"));
		await this.#job?.ended;
	}

	async #exclusively<T>(
		what: string,
		signal: AbortSignal | undefined,
		job: (signal: AbortSignal) => Promise<T>,
	): Promise<T> {
		if (this.#job !== undefined) {
			throw new StorageFileError(
				this.#context.path,
				"in-use",
				`a ${this.#job.what} of it is already in progress: only one can run at a time`,
			);
		}
		const either = AbortSignal.any([
			this.#closing.signal,
			...(signal === undefined ? [] : [signal]),
		]);
		either.throwIfAborted();
		const running = job(either);
		this.#job = { what, ended: Promise.allSettled([running]) };
		try {
			return await running;
		} finally {
			this.#job = undefined;
		}
	}
}
