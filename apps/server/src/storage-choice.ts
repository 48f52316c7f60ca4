import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { LocalLeases, Runtime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { createSqliteBackend } from "@plinth/storage-sqlite";

/** Where a server stores. */
export type StorageChoice =
	/** Forgotten when the server stops. */
	| { readonly kind: "memory" }
	/** In files of the folder, which is made where it is missing. */
	| { readonly kind: "sqlite"; readonly directory: string };

/** The name of the database within the data folder. */
const databaseFile = "plinth.sqlite";

/** Opens the storage. Fences of the given leases are checked with each commit. */
export async function openStorage(
	choice: StorageChoice,
	runtime: Runtime,
	leases: LocalLeases,
): Promise<StorageBackend> {
	switch (choice.kind) {
		case "memory":
			return createMemoryBackend({ runtime, leases });
		case "sqlite":
			await mkdir(choice.directory, { recursive: true });
			return createSqliteBackend({
				path: join(choice.directory, databaseFile),
				runtime,
				leases,
			});
	}
}
