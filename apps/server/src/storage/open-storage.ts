import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type LeaseManager, LocalLeases, type Logger, type Runtime } from "@plinth/runtime";
import {
	createMemoryBackend,
	type StorageBackend,
	type StorageIdentity,
	type StorageLimits,
} from "@plinth/storage";
import { createEtcdBackend, EtcdLeases, type EtcdOptions } from "@plinth/storage-etcd";
import { type CommitBatch, createSqliteBackend } from "@plinth/storage-sqlite";
import { type StorageCopies, sqliteCopies } from "../backup/storage-copies.ts";
import type { EtcdChoice } from "../configuration/etcd-choice.ts";
import { openDataDirectory } from "./data-directory.ts";

/** Where a server stores. */
export type StorageChoice =
	/** Forgotten when the server stops. */
	| { readonly kind: "memory" }
	/** In files of the folder, which is made where it is missing. */
	| { readonly kind: "sqlite"; readonly directory: string }
	/** In etcd, with all other servers that use the same prefix. */
	| ({ readonly kind: "etcd" } & EtcdChoice);

/** A storage, and the leases whose fences are checked with each commit to it. */
export interface OpenStorage {
	readonly backend: StorageBackend;
	readonly leases: LeaseManager;
	/** Who the storage is, where it knows. */
	readonly identity?: StorageIdentity;
	/** Backups of it while it is open. */
	readonly copies: StorageCopies;
	/** Gives back all leases, and closes the storage. */
	close(): Promise<void>;
}

/** What else there is to say about a storage. */
export interface StorageSettings {
	/** Limits that differ from those of the storage. */
	readonly limits?: Partial<StorageLimits>;
	/** Hears of the batches of commits, where there are any. */
	readonly onBatch?: (batch: CommitBatch) => void;
	/**
	 * Called once, when the storage can no longer be trusted and refuses all writes until the process starts
	 * again: a disk that did not keep what it was given, an etcd that went back in time.
	 */
	readonly onFailed?: (failure: Error) => void;
	/** Stops opening, which then rejects with the signal's reason. */
	readonly signal?: AbortSignal;
}

/** The name of the database within the data folder. */
export const databaseFile = "plinth.sqlite";

/** The name of the folder within it where backups are that are being sent. */
const copiesFolder = "plinth.backups";

/** Opens the storage. */
export async function openStorage(
	choice: StorageChoice,
	runtime: Runtime,
	log: Logger,
	{ limits = {}, onBatch, onFailed, signal }: StorageSettings = {},
): Promise<OpenStorage> {
	switch (choice.kind) {
		case "memory": {
			const leases = new LocalLeases();
			const copies = takenElsewhere(
				"the server stores in memory, which has no backup: start it with --storage sqlite, or write out resources with plinth get -o yaml",
			);
			return { ...alone(createMemoryBackend({ runtime, leases, limits }), leases), copies };
		}
		case "sqlite": {
			await openDataDirectory(choice.directory, log);
			const leases = new LocalLeases();
			const path = join(choice.directory, databaseFile);
			const backend = await createSqliteBackend({
				...{ path, runtime, leases, limits, log },
				...(onBatch && { onBatch }),
				...(onFailed && { onFailed }),
				...(signal && { signal }),
			});
			try {
				const copies = await sqliteCopies(backend, join(choice.directory, copiesFolder));
				return { ...alone(backend, leases), identity: backend.identity, copies };
			} catch (failure) {
				await backend.close();
				throw failure;
			}
		}
		case "etcd": {
			const options = await etcdOptions(choice, runtime, log);
			const backend = await createEtcdBackend({
				...{ ...options, limits },
				...(onFailed && { onFailed }),
				...(signal && { signal }),
			});
			const leases = new EtcdLeases({
				...options,
				until: backend.lost,
				holder: `${hostname()}, process ${process.pid}`,
			});
			const close = async () => {
				await leases.close();
				await backend.close();
			};
			const copies = takenElsewhere(
				"the server stores in etcd, which takes its own backups: etcdctl snapshot save <file>",
			);
			const { uid, incarnation, restores } = backend.identity;
			// A store that was never restored is known by what its records say already.
			const identity = restores === 0 ? undefined : { uid, incarnation, restores };
			return { backend, leases, copies, close, ...(identity && { identity }) };
		}
	}
}

/** A storage that one process has for itself, and so all its leases. */
function alone(backend: StorageBackend, leases: LeaseManager): Omit<OpenStorage, "copies"> {
	return { backend, leases, close: () => backend.close() };
}

/** Backups that don't come from the server. */
function takenElsewhere(instead: string): StorageCopies {
	return { kind: "taken-elsewhere", instead };
}

/** How to reach etcd, with the files of the choice read. */
export async function etcdOptions(
	{ endpoints, prefix, tls, auth }: EtcdChoice,
	runtime: Runtime,
	log: Logger,
): Promise<EtcdOptions> {
	const read = async (path: string | undefined) => path && (await readFile(path, "utf8"));
	const [ca, cert, key] = await Promise.all([tls?.caFile, tls?.certFile, tls?.keyFile].map(read));
	return {
		endpoints,
		runtime,
		log,
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
