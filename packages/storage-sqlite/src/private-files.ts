import {
	chmodSync,
	closeSync,
	constants,
	lstatSync,
	openSync,
	readdirSync,
	statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { takeOwnerFrom } from "./file-system.ts";

/** Read and written by the owner alone. */
const ownerOnly = 0o600;

/**
 * Makes an empty file that its owner alone may read and write, unless there is a file of that name. SQLite
 * takes an empty file for an empty database, and gives logs and journals the permissions of their database.
 *
 * @param like The file whose owner it gets, if it is there.
 */
export function makePrivate(path: string, like?: string): void {
	const { O_CREAT, O_EXCL, O_WRONLY } = constants;
	try {
		closeSync(openSync(path, O_CREAT | O_EXCL | O_WRONLY, ownerOnly));
	} catch (error) {
		if (error instanceof Error && "code" in error && error.code === "EEXIST") {
			return;
		}
		throw error;
	}
	if (like !== undefined && statSync(like, { throwIfNoEntry: false }) !== undefined) {
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
