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
import { refuseLink } from "./planted-links.ts";

/** Read and written by the owner alone. */
const ownerOnly = 0o600;

/**
 * Makes an empty file that its owner alone may read and write. SQLite takes an empty file for an empty database,
 * and gives logs and journals the permissions of their database.
 *
 * @throws StorageFileError if anything has that name, a symbolic link included: the file would be somebody else's.
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
		throw new StorageFileError(path, "exists", "the file is there already", { cause: error });
	}
}

/**
 * As `makePrivate`, unless there is a file of that name.
 *
 * @param like The file whose owner it gets, if it is there.
 * @throws StorageFileError if a symbolic link has that name.
 */
export function makePrivateUnlessThere(path: string, like: string): void {
	refuseLink(path);
	if (existsSync(path)) {
		return;
	}
	try {
		makePrivate(path);
	} catch (error) {
		// Another process may have made it meanwhile.
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
 * Takes all rights of others from the files of a storage: its log and lock, and what restores have left or
 * replaced. Earlier versions made them readable by everybody.
 *
 * @returns Those whose permissions this process may not change.
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

/** The owner is somebody else, or the file system has no permissions. A file may also just have gone. */
const cannotChange = new Set(["EPERM", "EACCES", "EROFS", "ENOTSUP", "EOPNOTSUPP", "ENOENT"]);
