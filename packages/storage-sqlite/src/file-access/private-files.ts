import {
	chmodSync,
	closeSync,
	constants,
	existsSync,
	lstatSync,
	openSync,
	readdirSync,
	statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { StorageFileError } from "../storage-file-error.ts";
import { takeOwnerFrom } from "./file-system.ts";
import { refuseLink } from "./unsafe-symlinks.ts";

/** Readable and writable only by the owner. */
const ownerOnly = 0o600;

/**
 * Creates an empty file that only its owner may read and write. SQLite accepts an empty file as an empty
 * database, and gives logs and journals the permissions of their database.
 *
 * @throws StorageFileError if the name exists, even as a symbolic link: another user may own it.
 */
export function makePrivate(path: string): void {
	const { O_CREAT, O_EXCL, O_WRONLY } = constants;
	try {
		closeSync(openSync(path, O_CREAT | O_EXCL | O_WRONLY, ownerOnly));
	} catch (error) {
		if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
			throw error;
		}
		refuseLink(path);
		throw new StorageFileError(path, "exists", "the file already exists", { cause: error });
	}
}

/**
 * Like `makePrivate`, unless the file exists.
 *
 * @param like The file whose owner it gets, if that exists.
 * @throws StorageFileError if the name is a symbolic link.
 */
export function makePrivateUnlessThere(path: string, like: string): void {
	refuseLink(path);
	if (existsSync(path)) {
		return;
	}
	try {
		makePrivate(path);
	} catch (error) {
		// Another process may have created it meanwhile.
		if (error instanceof StorageFileError && error.problem === "exists") {
			return;
		}
		throw error;
	}
	if (statSync(like, { throwIfNoEntry: false }) !== undefined) {
		takeOwnerFrom(path, like);
	}
}

/**
 * Removes all permissions of other users from the files of a storage, including its log, its lock and the
 * leftovers and replaced files of restores. Earlier versions created them readable by everybody.
 *
 * @returns The files whose permissions this process may not change.
 */
export function tightenFiles(path: string): readonly string[] {
	const base = basename(path);
	const isOfStorage = (name: string) =>
		name === base || name.startsWith(`${base}-`) || name.startsWith(`${base}.`);
	return readdirSync(dirname(path))
		.filter(isOfStorage)
		.map((name) => join(dirname(path), name))
		.filter((file) => !tighten(file));
}

function tighten(file: string): boolean {
	const found = lstatSync(file, { throwIfNoEntry: false });
	if (found === undefined || !found.isFile() || (found.mode & 0o077) === 0) {
		return true;
	}
	try {
		chmodSync(file, ownerOnly);
		return true;
	} catch (error) {
		if (error instanceof Error && "code" in error && cannotChange.has(String(error.code))) {
			return false;
		}
		throw error;
	}
}

/** The owner is another user, or the file system has no permissions. The file may also have been deleted. */
const cannotChange = new Set(["EPERM", "EACCES", "EROFS", "ENOTSUP", "EOPNOTSUPP", "ENOENT"]);
