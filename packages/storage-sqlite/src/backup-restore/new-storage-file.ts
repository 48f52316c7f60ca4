import { existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StoredIdentity } from "../file/identity.ts";
import { RowTable, type RowWrite, type Tally } from "../file/row-table.ts";
import { createSchema } from "../file/schema.ts";
import { fileError, isDiskFull } from "../file/sqlite-failure.ts";
import { syncToDisk, takeOwnerFrom } from "../file-access/file-system.ts";
import { makePrivate } from "../file-access/private-files.ts";
import { StorageFileError } from "../storage-file-error.ts";

/**
 * A storage file that is being made, under a name that nobody takes for a storage. Written without
 * any care for crashes, since it gets its name only when it is whole and on disk.
 */
export class NewStorageFile {
	readonly path: string;
	readonly #database: DatabaseSync;
	readonly #rows: RowTable;
	#tally: Tally = { resources: 0, digest: 0 };

	/**
	 * @param like The file whose owner it gets. Nobody else may read it.
	 * @throws StorageFileError
	 */
	constructor(path: string, identity: StoredIdentity, like: string) {
		this.path = path;
		if (existsSync(path)) {
			throw new StorageFileError(path, "exists", "the file is there already");
		}
		try {
			makePrivate(path);
			this.#database = new DatabaseSync(path, { timeout: 0 });
		} catch (error) {
			throw makingError(path, error);
		}
		try {
			takeOwnerFrom(path, like);
			this.#database.exec("PRAGMA journal_mode = MEMORY");
			this.#database.exec("PRAGMA synchronous = OFF");
			this.#database.exec("PRAGMA locking_mode = EXCLUSIVE");
			this.#database.exec("BEGIN");
			createSchema(this.#database, identity);
			this.#rows = new RowTable(this.#database);
		} catch (error) {
			this.discard();
			throw makingError(path, error);
		}
	}

	/** What was written so far. */
	get tally(): Tally {
		return this.#tally;
	}

	/** Writes rows, each of another key. */
	write(rows: readonly RowWrite[]): void {
		try {
			this.#tally = this.#rows.write(rows, this.#tally);
		} catch (error) {
			throw makingError(this.path, error);
		}
	}

	/** Completes the file and waits until it is on disk, without holding up the thread for that. */
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
			throw makingError(this.path, error);
		}
	}

	/** Removes the file, whatever became of it. */
	discard(): void {
		if (this.#database.isOpen) {
			this.#database.close();
		}
		rmSync(this.path, { force: true });
	}
}

/** What a failure to make a file is to whoever wanted it. */
function makingError(path: string, error: unknown): StorageFileError {
	if (error instanceof StorageFileError) {
		return error;
	}
	const why = error instanceof Error ? error.message : String(error);
	return isDiskFull(error)
		? new StorageFileError(path, "disk-full", `there is no room for the file: ${why}`, {
				cause: error,
			})
		: new StorageFileError(path, "unreachable", `the file can't be written: ${why}`, {
				cause: error,
			});
}

/** File systems without hard links say one of these. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Whether an error says that the file system has no hard links. */
export function lacksLinks(error: unknown): boolean {
	return error instanceof Error && "code" in error && noLinks.has(String(error.code));
}

/**
 * Gives a whole file its name, unless something has that already.
 *
 * @throws StorageFileError
 */
export function publish(from: string, to: string): void {
	refuseExisting(to);
	try {
		try {
			// Unlike a renaming, a link never replaces a file.
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

/** @throws StorageFileError if there is such a file. */
export function refuseExisting(path: string, cause?: unknown): void {
	if (existsSync(path)) {
		throw new StorageFileError(
			path,
			"exists",
			"the file is there already, and has been left as it is: give the backup another name",
			{ cause },
		);
	}
}
