import { lstatSync, readlinkSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StorageFileError } from "../storage-file-error.ts";

const remedy = "remove it, and choose a directory that only the server may write to";

/** The suffixes of the files opened with a storage file, in order of use. None of them may be a link. */
const suffixes = [
	...[".lock", ".restored", ".restoring", ".restoring-journal", ".new", ".new-journal"],
	...["-journal", "-wal", "-shm"],
];

/**
 * Refuses a storage whose companion files would be created or opened through symbolic links, which let their
 * creator choose the file.
 *
 * @param path The canonical path; see `realPathOf`.
 * @throws StorageFileError that names the link.
 */
export function refuseLinkedFiles(path: string): void {
	for (const suffix of suffixes) {
		refuseLink(path + suffix, path);
	}
}

/** @throws StorageFileError if a file that the storage creates is a symbolic link. */
export function refuseLink(file: string, path = file): void {
	if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) {
		const target = JSON.stringify(readlinkSync(file));
		throw new StorageFileError(
			path,
			"unreachable",
			`${file} is a symbolic link to ${target}, which the server did not create: ${remedy}`,
		);
	}
}

/**
 * Refuses a path through a symbolic link that another user has created in a directory writable by others, such
 * as /tmp. Links of this user, of the superuser and of the directory's owner are followed, as Linux does
 * with fs.protected_symlinks.
 *
 * @throws StorageFileError that names the link.
 */
export function refuseUnsafeSymlinks(path: string): void {
	const user = process.getuid?.();
	if (user === undefined) {
		return;
	}
	for (const each of withParents(resolve(path))) {
		const link = lstatSync(each, { throwIfNoEntry: false });
		if (link === undefined) {
			return;
		}
		if (!link.isSymbolicLink()) {
			continue;
		}
		const directory = statSync(dirname(each));
		if ((directory.mode & 0o022) !== 0 && ![user, 0, directory.uid].includes(link.uid)) {
			throw new StorageFileError(
				path,
				"unreachable",
				`${each} is a symbolic link of user ${link.uid}, in a directory that others may write to: ${remedy}`,
			);
		}
	}
}

/** A path and its parent directories, the root first. */
function withParents(path: string): readonly string[] {
	const parent = dirname(path);
	return parent === path ? [path] : [...withParents(parent), path];
}
