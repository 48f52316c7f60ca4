import type { Logger, Runtime } from "@plinth/runtime";
import { Inconsistent, LoadCapacity, StateStore, type StorageLimits } from "@plinth/storage";
import { realPathOf } from "../file-access/file-system.ts";
import { load } from "../loading/load.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { StorageThread } from "../thread/storage-thread.ts";
import {
	type BackupOptions,
	type BackupReport,
	backupReport,
	drawn,
	type RestoreOptions,
	type RestoreReport,
	restoreReport,
	revisionOf,
} from "./backup-restore.ts";
import { inFileThread } from "./file-thread.ts";
import type { Replaced } from "./restore-build.ts";
import { removeLeftovers, restoringPath } from "./restore-swap.ts";

/** The file of a storage that is open. */
export interface OpenFileContext {
	/** See `realPathOf`. */
	readonly path: string;
	readonly thread: StorageThread;
	readonly runtime: Runtime;
	readonly limits: StorageLimits;
	readonly log: Logger;
}

/** What a restore puts in the place of the storage. */
export interface Restored {
	readonly store: StateStore;
	readonly report: RestoreReport;
}

/** Replaces the file, unless the storage has come to a revision that the new one would not be past. */
export type Swap = (revision: number) => Promise<Restored>;

/** Backups and restores of a storage that is open: one of them at a time. */
export class OpenFile {
	readonly #context: OpenFileContext;
	readonly #closing = new AbortController();
	#job: { readonly what: string; readonly ended: Promise<unknown> } | undefined;

	constructor(context: OpenFileContext) {
		this.#context = context;
	}

	/** See `SqliteBackend.backup`. */
	backup(options: BackupOptions): Promise<BackupReport> {
		return this.#alone("backup", options.signal, async (signal) => {
			const to = realPathOf(options.to);
			const { thread, runtime } = this.#context;
			const progress = (resources: number, of: number) => options.progress?.({ resources, of });
			const outcome = await thread.backup({ to, ...drawn(runtime) }, signal, progress);
			switch (outcome.kind) {
				case "done":
					return backupReport(to, outcome.result);
				case "failed":
					throw new StorageFileError(outcome.path, outcome.problem, outcome.why);
				case "aborted":
					throw signal.reason ?? new Inconsistent("the backup was interrupted");
			}
		});
	}

	/**
	 * See `SqliteBackend.restore`.
	 *
	 * @param replaced What is known of the storage now.
	 * @param exchange Calls the function while no commit is under way, and goes on with its result.
	 */
	restore(
		options: RestoreOptions,
		replaced: () => Replaced,
		exchange: (swap: Swap) => Promise<RestoreReport>,
	): Promise<RestoreReport> {
		return this.#alone("restore", options.signal, async (signal) => {
			const { path, thread, runtime, log, limits } = this.#context;
			const { progress } = options;
			const world = drawn(runtime);
			const order = {
				path,
				from: realPathOf(options.from),
				newestRevision: revisionOf(options.newestVersion),
				replaced: replaced(),
				...world,
			};
			try {
				const job = { kind: "build", ...order } as const;
				const built = await inFileThread(job, { signal, ...(progress && { progress }) });
				const store = new StateStore(runtime, limits);
				const { fresh } = world;
				const reading = new StorageThread({ path: restoringPath(path), mode: "read", fresh });
				try {
					const capacity = new LoadCapacity(limits);
					await load(reading, store, path, { clock: runtime.clock, log, capacity, signal });
				} finally {
					await reading.abandon();
				}
				return await exchange(async (revision) => {
					signal.throwIfAborted();
					if (revision >= built.head.revision) {
						throw new StorageFileError(
							path,
							"clock",
							`not restored: commits have reached version ${revision} while it was prepared, past the ${built.head.revision} that the clock stands for. Set the clock, and try again`,
						);
					}
					return { store, report: restoreReport({ ...built, replaced: await thread.replace() }) };
				});
			} finally {
				removeLeftovers(path);
			}
		});
	}

	/** Ends what is under way. */
	async close(): Promise<void> {
		this.#closing.abort(new Inconsistent("the storage was closed"));
		await this.#job?.ended;
	}

	async #alone<T>(
		what: string,
		signal: AbortSignal | undefined,
		job: (signal: AbortSignal) => Promise<T>,
	): Promise<T> {
		if (this.#job !== undefined) {
			throw new StorageFileError(
				this.#context.path,
				"in-use",
				`a ${this.#job.what} of it is under way: one at a time`,
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
