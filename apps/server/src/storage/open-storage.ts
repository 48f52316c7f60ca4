import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { newUlid } from "@plinth/resource";
import {
	type LeaseManager,
	LocalLeases,
	LocalTimedLeases,
	type Logger,
	type Runtime,
	type TimedLeases,
} from "@plinth/runtime";
import {
	type CommitBatch,
	createMemoryBackend,
	type EventStorage,
	type HistorySource,
	LocalServerDirectory,
	MemoryEventStorage,
	type ServerDirectory,
	type StorageBackend,
	type StorageIdentity,
	type StorageLimits,
	type StorageStatistics,
	type WatchDeliveries,
} from "@plinth/storage";
import type { EtcdBackendOptions, EtcdOptions } from "@plinth/storage-etcd";
import { type StorageCopies, sqliteCopies } from "../backup/storage-copies.ts";
import type { EtcdSettings } from "../configuration/etcd-settings.ts";
import { openDataDirectory } from "./data-directory.ts";

/** The storage of a server. */
export type StorageOptions =
	/** Lost when the server stops. */
	| { readonly kind: "memory" }
	/** In files of a directory, which is created if it is missing. */
	| { readonly kind: "sqlite"; readonly directory: string }
	/** In etcd, shared with all servers that use the same prefix. */
	| ({ readonly kind: "etcd" } & EtcdSettings);

/** An open storage, and the leases whose fences each commit checks. */
export interface OpenStorage {
	readonly backend: StorageBackend & HistorySource;
	readonly leases: LeaseManager;
	/** Leases for processes that are not servers, with fences that each commit checks too. */
	readonly timedLeases: TimedLeases;
	/** The rows of events. What follows them ends as StorageUnavailable when the storage is closed. */
	readonly events: EventStorage;
	/** The servers that use the storage. */
	readonly servers: ServerDirectory;
	/** The identity of the storage, if it has one. */
	readonly identity?: StorageIdentity;
	/** The counts that the storage maintains. */
	readonly statistics: () => StorageStatistics;
	/** Takes backups of the open storage. */
	readonly copies: StorageCopies;
	/** Releases all leases, and closes the storage. */
	close(): Promise<void>;
}

/** Further options of `openStorage`. */
export interface OpenStorageOptions {
	/** Limits that differ from the defaults. */
	readonly limits?: Partial<StorageLimits>;
	/** Where watches wait for their turn. */
	readonly deliveries?: WatchDeliveries;
	/** Called with each batch of commits, if the storage has any. */
	readonly onBatch?: (batch: CommitBatch) => void;
	/**
	 * Called once, when the storage has failed and refuses all writes until the process is restarted: the disk
	 * lost a write, or etcd was restored to an earlier state.
	 */
	readonly onFailed?: (failure: Error) => void;
	/** Interrupts `openStorage`, which then rejects with the reason of the signal. */
	readonly signal?: AbortSignal;
}

/** The file name of the database in the data directory. */
export const databaseFile = "plinth.sqlite";

/** The subdirectory of backups that are being sent. */
const copiesDirectory = "plinth.backups";

/** Opens the storage. Loads only the package of that one. */
export async function openStorage(
	options: StorageOptions,
	runtime: Runtime,
	logger: Logger,
	{ limits = {}, deliveries, onBatch, onFailed, signal }: OpenStorageOptions = {},
): Promise<OpenStorage> {
	const shared = deliveries && { deliveries };
	switch (options.kind) {
		case "memory": {
			// What an earlier process has stored is lost, and its leases with it.
			const { leases, timedLeases } = localLeases(runtime, { isFirst: true });
			const copies = takenElsewhere(
				"the memory storage has no backups: start the server with --storage sqlite, or export resources with plinth get -o yaml",
			);
			// In microseconds: no process commits so often that the next one, which starts later, would repeat a version.
			const afterVersion = Math.floor(runtime.clock.now()) * 1_000;
			const backend = createMemoryBackend({ runtime, leases, limits, afterVersion, ...shared });
			const events = new MemoryEventStorage(runtime.clock);
			const close = async () => {
				timedLeases.close();
				events.close();
				await backend.close();
			};
			const servers = new LocalServerDirectory();
			const statistics = () => backend.statistics();
			return { backend, leases, timedLeases, events, servers, statistics, copies, close };
		}
		case "sqlite": {
			const { createSqliteBackend } = await import("@plinth/storage-sqlite");
			await openDataDirectory(options.directory, logger);
			const { leases, timedLeases } = localLeases(runtime, { isFirst: false });
			const path = join(options.directory, databaseFile);
			const backend = await createSqliteBackend({
				...{ path, runtime, leases, limits, logger, ...shared },
				...(onBatch && { onBatch }),
				...(onFailed && { onFailed }),
				...(signal && { signal }),
			});
			try {
				const copies = await sqliteCopies(backend, join(options.directory, copiesDirectory));
				const { events, identity } = backend;
				const servers = new LocalServerDirectory();
				const close = async () => {
					timedLeases.close();
					await backend.close();
				};
				const statistics = () => backend.statistics();
				const opened = { backend, leases, timedLeases, events, servers, statistics };
				return { ...opened, identity, copies, close };
			} catch (failure) {
				await backend.close();
				throw failure;
			}
		}
		case "etcd":
			return openEtcd(options, runtime, logger, {
				limits,
				...shared,
				...(onBatch && { onBatch }),
				...(onFailed && { onFailed }),
				...(signal && { signal }),
			});
	}
}

async function openEtcd(
	options: EtcdSettings,
	runtime: Runtime,
	logger: Logger,
	settings: Pick<EtcdBackendOptions, "limits" | "deliveries" | "onBatch" | "onFailed" | "signal">,
): Promise<OpenStorage> {
	const { createEtcdBackend, EtcdLeases } = await import("@plinth/storage-etcd");
	const etcd = await etcdOptions(options, runtime, logger);
	const backend = await createEtcdBackend({ ...etcd, ...settings });
	const leases = new EtcdLeases({
		...etcd,
		signal: backend.historyLost,
		holder: `${hostname()}, process ${process.pid}`,
	});
	const close = async () => {
		await leases.close();
		await backend.close();
	};
	const copies = takenElsewhere(
		"the server stores its data in etcd: back up etcd with etcdctl snapshot save <file>",
	);
	const { events, servers } = backend;
	const { uid, incarnation, restores } = backend.identity;
	// A storage that was never restored is identified by its records alone.
	const identity = restores === 0 ? undefined : { uid, incarnation, restores };
	const statistics = () => backend.statistics();
	const { timed: timedLeases } = leases;
	const opened = { backend, leases, timedLeases, events, servers, statistics, copies, close };
	return { ...opened, ...(identity && { identity }) };
}

/** The leases of a storage that only this process can open. */
function localLeases(runtime: Runtime, { isFirst }: { readonly isFirst: boolean }) {
	const leases = new LocalLeases(newUlid(runtime));
	return { leases, timedLeases: new LocalTimedLeases({ leases, clock: runtime.clock, isFirst }) };
}

/** Backups that the server does not take. */
function takenElsewhere(instead: string): StorageCopies {
	return { kind: "taken-elsewhere", instead };
}

/** Options of the etcd client, with the contents of the files that the settings name. */
export async function etcdOptions(
	{ endpoints, prefix, tls, auth }: EtcdSettings,
	runtime: Runtime,
	logger: Logger,
): Promise<EtcdOptions> {
	const read = async (path: string | undefined) => path && (await readFile(path, "utf8"));
	const [ca, cert, key] = await Promise.all([tls?.caFile, tls?.certFile, tls?.keyFile].map(read));
	return {
		endpoints,
		runtime,
		logger,
		...(prefix !== undefined && { prefix }),
		tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
		...(auth && {
			auth: {
				user: auth.user,
				password: async () => (await readFile(auth.passwordFile, "utf8")).trimEnd(),
			},
		}),
	};
}
