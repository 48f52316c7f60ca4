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
import { refuseUnsafeSymlinks } from "./unsafe-symlinks.ts";

/**
 * The canonical path of a file, with links resolved. Locks and companion files are named after it. For a
 * file that does not exist yet, the path that it will have.
 *
 * @throws StorageFileError if its directory is missing, or a link is broken or may have been planted.
 */
export function realPathOf(path: string): string {
	try {
		refuseUnsafeSymlinks(path);
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

/** Syncs the content of a file, or the entries of a directory, to disk. */
export function syncToDisk(path: string): void {
	const descriptor = openSync(path, "r");
	try {
		fsyncSync(descriptor);
	} finally {
		closeSync(descriptor);
	}
}

/** Gives a file the owner of another one if this process may, so that the same users can open both. */
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
