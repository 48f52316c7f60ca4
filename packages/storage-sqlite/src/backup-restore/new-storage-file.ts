import { existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { allowShrinking } from "../file/free-space.ts";
import type { StoredIdentity } from "../file/identity.ts";
import { RowTable, type RowWrite, type Tally } from "../file/row-table.ts";
import { createSchema } from "../file/schema.ts";
import { fileError, isDiskFull } from "../file/sqlite-failure.ts";
import { syncToDisk, takeOwnerFrom } from "../file-access/file-system.ts";
import { makePrivate } from "../file-access/private-files.ts";
import { StorageFileError } from "../storage-file-error.ts";

/**
 * A storage file under construction, with a temporary name. It is written without protection against crashes,
 * since it gets its final name only when it is complete and on disk.
 */
export class NewStorageFile {
	readonly path: string;
	readonly #database: DatabaseSync;
	readonly #rows: RowTable;
	#tally: Tally = { resources: 0, digest: 0 };

	/**
	 * @param like The file whose owner it gets; only that owner may read it.
	 * @throws StorageFileError
	 */
	constructor(path: string, identity: StoredIdentity, like: string) {
		this.path = path;
		if (existsSync(path)) {
			throw new StorageFileError(path, "exists", "the file already exists");
		}
		try {
			makePrivate(path);
			this.#database = new DatabaseSync(path, { timeout: 0 });
		} catch (error) {
			throw creationError(path, error);
		}
		try {
			takeOwnerFrom(path, like);
			allowShrinking(this.#database);
			this.#database.exec("PRAGMA journal_mode = MEMORY");
			this.#database.exec("PRAGMA synchronous = OFF");
			this.#database.exec("PRAGMA locking_mode = EXCLUSIVE");
			this.#database.exec("BEGIN");
			createSchema(this.#database, identity);
			this.#rows = new RowTable(this.#database);
		} catch (error) {
			this.discard();
			throw creationError(path, error);
		}
	}

	/** The number of rows written so far, and their digest. */
	get tally(): Tally {
		return this.#tally;
	}

	/** Writes rows, each with a different key. */
	write(rows: readonly RowWrite[]): void {
		try {
			this.#tally = this.#rows.write(rows, this.#tally);
		} catch (error) {
			throw creationError(this.path, error);
		}
	}

	/** Completes the file and syncs it to disk without blocking the thread. */
	async finish(revision: number): Promise<void> {
		try {
			this.#rows.setHead({ revision, ...this.#tally });
			this.#database.exec("COMMIT");
			this.#database.close();
			const file = await open(this.path, "r+");
			try {
				await file.sync();
			} finally {
				await file.close();
			}
		} catch (error) {
			throw creationError(this.path, error);
		}
	}

	/** Removes the file. */
	discard(): void {
		if (this.#database.isOpen) {
			this.#database.close();
		}
		rmSync(this.path, { force: true });
	}
}

/** Converts an error of creating a file. */
function creationError(path: string, error: unknown): StorageFileError {
	if (error instanceof StorageFileError) {
		return error;
	}
	const why = error instanceof Error ? error.message : String(error);
	return isDiskFull(error)
		? new StorageFileError(
				path,
				"disk-full",
				`there is not enough disk space for the file: ${why}`,
				{
					cause: error,
				},
			)
		: new StorageFileError(path, "unreachable", `the file can't be written: ${why}`, {
				cause: error,
			});
}

/** The error codes of file systems without hard links. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Whether the error means that the file system has no hard links. */
export function lacksLinks(error: unknown): boolean {
	return error instanceof Error && "code" in error && noLinks.has(String(error.code));
}

/**
 * Gives a complete file its final name, unless that already exists.
 *
 * @throws StorageFileError
 */
export function publish(from: string, to: string): void {
	refuseExisting(to);
	try {
		try {
			// Unlike a rename, a link never replaces a file.
			linkSync(from, to);
			rmSync(from);
		} catch (error) {
			if (!lacksLinks(error)) {
				throw error;
			}
			renameSync(from, to);
		}
		syncToDisk(dirname(to));
	} catch (error) {
		refuseExisting(to, error);
		throw fileError(to, error);
	}
}

/** @throws StorageFileError if the file exists. */
export function refuseExisting(path: string, cause?: unknown): void {
	if (existsSync(path)) {
		throw new StorageFileError(
			path,
			"exists",
			"the file already exists, and has been left as it is: choose another name for the backup",
			{ cause },
		);
	}
}
