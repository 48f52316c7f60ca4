import { constants } from "node:fs";
import { access, chmod, mkdir, readdir, readlink, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Logger } from "@plinth/runtime";
import { refuseUnsafeSymlinks, StorageFileError } from "@plinth/storage-sqlite";

/** Only the owner can enter and list it. */
const ownerOnly = 0o700;

/** The prefix of all names that the server uses in its data directory. */
const ownPrefix = "plinth.";

/**
 * Creates the data directory and its parents if they are missing, with access for the owner only.
 *
 * Access of other users to an existing directory is removed if it contains only files of a server and this
 * process owns it: earlier versions made it readable by everyone. A directory with other contents is left as it
 * is, with a warning; only their owner can access the server's files in either case.
 *
 * @throws StorageFileError that names the directory and what is wrong with it.
 */
export async function openDataDirectory(directory: string, logger: Logger): Promise<void> {
	try {
		refuseUnsafeSymlinks(directory);
		await create(resolve(directory));
		// A link may have been planted since the first check.
		refuseUnsafeSymlinks(directory);
		await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
	} catch (cause) {
		throw new StorageFileError(
			directory,
			"unreachable",
			`the data directory (--data-dir) can't be used: ${await explain(directory, cause)}`,
			{ cause },
		);
	}
	await tighten(directory, logger);
}

/**
 * Creates a directory and its parents. Unlike `mkdir` with `recursive`, it terminates if the file system reports
 * an existing parent as missing, as that of /proc does.
 */
async function create(directory: string): Promise<void> {
	try {
		await mkdir(directory, { mode: ownerOnly });
	} catch (error) {
		switch (codeOf(error)) {
			case "EEXIST": {
				// A link to a directory will do.
				const found = await stat(directory);
				if (!found.isDirectory()) {
					throw error;
				}
				return;
			}
			case "ENOENT": {
				const parent = dirname(directory);
				if (parent === directory) {
					throw error;
				}
				await create(parent);
				await createBelow(directory);
				return;
			}
			default:
				throw error;
		}
	}
}

/** Creates a directory whose parent exists. */
async function createBelow(directory: string): Promise<void> {
	try {
		await mkdir(directory, { mode: ownerOnly });
	} catch (error) {
		// Another process may have created it in the meantime.
		if (codeOf(error) !== "EEXIST" || !(await stat(directory)).isDirectory()) {
			throw error;
		}
	}
}

async function explain(directory: string, cause: unknown): Promise<string> {
	if (cause instanceof StorageFileError) {
		return cause.reason;
	}
	const why = cause instanceof Error ? cause.message : String(cause);
	const target = await readlink(directory).catch(() => undefined);
	const found = await stat(directory).catch(() => undefined);
	if (found === undefined && target !== undefined) {
		return `it is a symbolic link to ${JSON.stringify(target)}, whose target does not exist (${why})`;
	}
	if (found !== undefined && !found.isDirectory()) {
		return `it is a file, not a directory (${why})`;
	}
	switch (codeOf(cause)) {
		case "EACCES":
		case "EPERM":
			return `user ${process.getuid?.() ?? "unknown"}, who runs this process, needs to read, write and search it (${why})`;
		case "EROFS":
			return `its file system is read-only (${why})`;
		case "ENOTDIR":
			return `a part of its path is a file, not a directory (${why})`;
		case "ENOENT":
			return `its file system can't create directories there (${why})`;
		default:
			return why;
	}
}

async function tighten(directory: string, logger: Logger): Promise<void> {
	const { mode, uid } = await stat(directory);
	if ((mode & 0o077) === 0) {
		return;
	}
	const isOwn = process.getuid === undefined || uid === process.getuid();
	const names = await readdir(directory);
	if (isOwn && names.every((name) => name.startsWith(ownPrefix))) {
		await chmod(directory, ownerOnly);
		return;
	}
	logger.warn(
		{ directory, mode: (mode & 0o777).toString(8), ...(!isOwn && { owner: uid }) },
		"other users can open the data directory, and it also contains other files or belongs to another user: change its mode to 0700, or choose another --data-dir",
	);
}

function codeOf(error: unknown): string {
	return error instanceof Error && "code" in error ? String(error.code) : "";
}
