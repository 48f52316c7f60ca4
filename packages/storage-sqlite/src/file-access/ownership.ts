import { DatabaseSync } from "node:sqlite";
import { fileError } from "../file/sqlite-failure.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { makePrivateUnlessThere } from "./private-files.ts";
import { refuseLinkedFiles } from "./unsafe-symlinks.ts";

/** The exclusive right to open a storage. */
export interface Ownership {
	release(): void;
}

/**
 * Locks `<path>.lock` with a lock of the operating system, through SQLite, which supports every platform.
 * The lock ends with the process, however that ends; the remaining file has no meaning.
 *
 * @param path The canonical path; see `realPathOf`.
 * @throws StorageFileError if it is locked, or the directory can't be written to or has links with the names
 *   of the storage's files.
 */
export function takeOwnership(path: string): Ownership {
	refuseLinkedFiles(path);
	let lock: DatabaseSync | undefined;
	try {
		makePrivateUnlessThere(`${path}.lock`, path);
		lock = new DatabaseSync(`${path}.lock`, { timeout: 0 });
		// Nothing is ever written to it, so that a full disk does not prevent locking.
		lock.exec("PRAGMA journal_mode = MEMORY");
		lock.exec("BEGIN EXCLUSIVE");
		const held = lock;
		return { release: () => held.close() };
	} catch (cause) {
		lock?.close();
		const { problem, reason } = fileError(`${path}.lock`, cause);
		if (problem !== "in-use") {
			throw new StorageFileError(
				path,
				"unreachable",
				`its lock can't be acquired, so it is unknown whether it is in use: ${reason}`,
				{ cause },
			);
		}
		throw new StorageFileError(
			path,
			"in-use",
			"another process has it open; one storage file serves one server at a time: stop the other one, or give this one another data directory",
			{ cause },
		);
	}
}
