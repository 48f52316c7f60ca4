import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { syncToDisk } from "../file-access/file-system.ts";
import { makePrivate } from "../file-access/private-files.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { allowShrinking } from "./free-space.ts";
import type { FreshIds } from "./migrations.ts";
import { createSchema } from "./schema.ts";

/**
 * Creates an empty storage if the file does not exist. It gets its name only when it is complete and on
 * disk, so that a kill at any instant leaves no file or a complete one.
 *
 * @throws StorageFileError if the file is missing but its write-ahead log exists, which SQLite would apply
 *   to the new file.
 */
export function createIfMissing(path: string, fresh: FreshIds): void {
	if (existsSync(path)) {
		return;
	}
	if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
		throw new StorageFileError(
			path,
			"damaged",
			`the file is missing, but its write-ahead log (${path}-wal) exists: put the file back, restore it from a backup, or move the log away to start with an empty storage`,
		);
	}
	const unfinished = `${path}.new`;
	for (const leftover of [unfinished, `${unfinished}-journal`]) {
		rmSync(leftover, { force: true });
	}
	makePrivate(unfinished);
	const database = new DatabaseSync(unfinished);
	try {
		allowShrinking(database);
		database.exec("PRAGMA synchronous = FULL");
		database.exec("BEGIN");
		createSchema(database, { ...fresh, restores: 0 });
		database.exec("COMMIT");
	} finally {
		database.close();
	}
	renameSync(unfinished, path);
	syncToDisk(dirname(path));
}
