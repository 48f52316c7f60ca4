import { DatabaseSync } from "node:sqlite";
import { fileError } from "../file/sqlite-failure.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { refuseLinkedFiles } from "./planted-links.ts";
import { makePrivateUnlessThere } from "./private-files.ts";

/** The right to be the only one who has a storage open. */
export interface Ownership {
	release(): void;
}

/**
 * Takes a lock of the operating system on `<path>.lock`, through SQLite, which knows how on every
 * platform. It ends with the process, however that ends; the file itself stays and means nothing.
 *
 * @param path The file's one name; see `realPathOf`.
 * @throws StorageFileError if somebody has it, or the directory can't be written to, or has links under the
 *   names of the storage's files.
 */
export function takeOwnership(path: string): Ownership {
	refuseLinkedFiles(path);
	let lock: DatabaseSync | undefined;
	try {
		makePrivateUnlessThere(`${path}.lock`, path);
		lock = new DatabaseSync(`${path}.lock`, { timeout: 0 });
		// Nothing is ever written to it: so that a full disk does not stand in the way.
		lock.exec("PRAGMA journal_mode = MEMORY");
		lock.exec("BEGIN EXCLUSIVE");
		const held = lock;
		return { release: () => held.close() };
	} catch (cause) {
		lock?.close();
		const { problem, why } = fileError(`${path}.lock`, cause);
		if (problem !== "in-use") {
			throw new StorageFileError(
				path,
				"unreachable",
				`its lock can't be taken, so that it is not known whether it is in use: ${why}`,
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
