import {
	chownSync,
	closeSync,
	fsyncSync,
	lstatSync,
	openSync,
	realpathSync,
	statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { StorageFileError } from "../storage-file-error.ts";
import { refusePlantedLinks } from "./planted-links.ts";

/**
 * The one name of a file, whatever links lead to it: locks and the files beside it go by it. Of a
 * file that is not there yet, the name that it will have.
 *
 * @throws StorageFileError if its directory is missing, or a link leads nowhere or may have been planted.
 */
export function realPathOf(path: string): string {
	try {
		refusePlantedLinks(path);
		if (lstatSync(path, { throwIfNoEntry: false }) === undefined) {
			return join(realpathSync(dirname(path)), basename(path));
		}
		return realpathSync(path);
	} catch (cause) {
		if (cause instanceof StorageFileError) {
			throw cause;
		}
		const why = cause instanceof Error ? cause.message : String(cause);
		throw new StorageFileError(path, "unreachable", `it can't be reached: ${why}`, { cause });
	}
}

/** Waits until the content of a file, or the names in a directory, are on disk. */
export function syncToDisk(path: string): void {
	const descriptor = openSync(path, "r");
	try {
		fsyncSync(descriptor);
	} finally {
		closeSync(descriptor);
	}
}

/** Gives a file the owner of another one, as far as this process may: who could open that can open this. */
export function takeOwnerFrom(path: string, other: string): void {
	const { uid, gid } = statSync(other);
	try {
		chownSync(path, uid, gid);
	} catch (error) {
		// Only the superuser may give files away.
		if (!(error instanceof Error && "code" in error && error.code === "EPERM")) {
			throw error;
		}
	}
}
