import { DatabaseSync } from "node:sqlite";
import { StorageFileError } from "./storage-file-error.ts";

/** The right to be the only one who has a storage open. */
export interface Ownership {
	release(): void;
}

/**
 * Takes a lock of the operating system on `<path>.lock`, through SQLite, which knows how on every
 * platform. It ends with the process, however that ends; the file itself stays and means nothing.
 *
 * @throws StorageFileError where somebody has it.
 */
export function takeOwnership(path: string): Ownership {
	const lock = new DatabaseSync(`${path}.lock`, { timeout: 0 });
	try {
		lock.exec("BEGIN EXCLUSIVE");
	} catch (cause) {
		lock.close();
		throw new StorageFileError(
			path,
			"in-use",
			"another process has it open; one storage file serves one server at a time: stop the other one, or give this one another data directory",
			{ cause },
		);
	}
	return { release: () => lock.close() };
}
