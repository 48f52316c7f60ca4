import { mkdir, readFile } from "node:fs/promises";
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
import { createSqliteBackend } from "@plinth/storage-sqlite";
import type { EtcdChoice } from "./configuration/etcd-choice.ts";

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
	/** Gives back all leases, and closes the storage. */
	close(): Promise<void>;
}

/** The name of the database within the data folder. */
export const databaseFile = "plinth.sqlite";

/** Opens the storage. */
export async function openStorage(
	choice: StorageChoice,
	runtime: Runtime,
	log: Logger,
	limits: Partial<StorageLimits> = {},
): Promise<OpenStorage> {
	switch (choice.kind) {
		case "memory": {
			const leases = new LocalLeases();
			return alone(createMemoryBackend({ runtime, leases, limits }), leases);
		}
		case "sqlite": {
			await mkdir(choice.directory, { recursive: true });
			const leases = new LocalLeases();
			const path = join(choice.directory, databaseFile);
			const backend = await createSqliteBackend({ path, runtime, leases, limits, log });
			return { ...alone(backend, leases), identity: backend.identity };
		}
		case "etcd": {
			const options = await etcdOptions(choice, runtime, log);
			const backend = await createEtcdBackend({ ...options, limits });
			const leases = new EtcdLeases({
				...options,
				holder: `${hostname()}, process ${process.pid}`,
			});
			const close = async () => {
				await leases.close();
				await backend.close();
			};
			return { backend, leases, close };
		}
	}
}

/** A storage that one process has for itself, and so all its leases. */
function alone(backend: StorageBackend, leases: LeaseManager): OpenStorage {
	return { backend, leases, close: () => backend.close() };
}

async function etcdOptions(
	{ endpoints, prefix, tls, auth }: EtcdChoice,
	runtime: Runtime,
	log: Logger,
): Promise<EtcdOptions> {
	const read = async (path: string | undefined) => path && (await readFile(path, "utf8"));
	const [ca, cert, key, password] = await Promise.all(
		[tls?.caFile, tls?.certFile, tls?.keyFile, auth?.passwordFile].map(read),
	);
	return {
		endpoints,
		runtime,
		log,
		...(prefix !== undefined && { prefix }),
		tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
		...(auth && { auth: { user: auth.user, password: (password ?? "").trimEnd() } }),
	};
}
