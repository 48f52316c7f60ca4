import { constants } from "node:fs";
import { access, chmod, mkdir, readdir, readlink, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Logger } from "@plinth/runtime";
import { refusePlantedLinks, StorageFileError } from "@plinth/storage-sqlite";

/** Entered and listed by the owner alone. */
const ownerOnly = 0o700;

/** What every name begins with that the server gives to what it keeps in its data directory. */
const ownPrefix = "plinth.";

/**
 * Makes the data directory where it is missing, for its owner alone, and its parents with it.
 *
 * A directory that exists loses the rights of others if nothing but files of a server is in it and this
 * process may do that: earlier versions made it readable by everybody. One that is used for other things as
 * well is left as it is, with a warning; the files in it are their owner's alone either way.
 *
 * @throws StorageFileError that names the directory and what is wrong with it.
 */
export async function openDataDirectory(directory: string, logger: Logger): Promise<void> {
	try {
		refusePlantedLinks(directory);
		await make(resolve(directory));
		// What was missing before may have been planted meanwhile.
		refusePlantedLinks(directory);
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
 * Makes a directory and its parents. Unlike `mkdir` with `recursive`, it ends where the file system says that a
 * parent is missing which is there, as that of /proc does.
 */
async function make(directory: string): Promise<void> {
	try {
		await mkdir(directory, { mode: ownerOnly });
	} catch (error) {
		switch (codeOf(error)) {
			case "EEXIST": {
				// Also where it is a link: then to a directory.
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
				await make(parent);
				await makeBelow(directory);
				return;
			}
			default:
				throw error;
		}
	}
}

/** Makes a directory whose parent is there. */
async function makeBelow(directory: string): Promise<void> {
	try {
		await mkdir(directory, { mode: ownerOnly });
	} catch (error) {
		// Another process may have made it meanwhile.
		if (codeOf(error) !== "EEXIST" || !(await stat(directory)).isDirectory()) {
			throw error;
		}
	}
}

async function explain(directory: string, cause: unknown): Promise<string> {
	if (cause instanceof StorageFileError) {
		return cause.why;
	}
	const why = cause instanceof Error ? cause.message : String(cause);
	const target = await readlink(directory).catch(() => undefined);
	const found = await stat(directory).catch(() => undefined);
	if (found === undefined && target !== undefined) {
		return `it is a symbolic link to ${JSON.stringify(target)}, which leads nowhere (${why})`;
	}
	if (found !== undefined && !found.isDirectory()) {
		return `it is a file, not a directory (${why})`;
	}
	switch (codeOf(cause)) {
		case "EACCES":
		case "EPERM":
			return `this process, of user ${process.getuid?.() ?? "unknown"}, needs to read, write and search it (${why})`;
		case "EROFS":
			return `its file system is read-only (${why})`;
		case "ENOENT":
			return `its file system makes no directories there (${why})`;
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
		"others may open the data directory, and it is not the server's alone to change: give it mode 0700, or choose another --data-dir",
	);
}

function codeOf(error: unknown): string {
	return error instanceof Error && "code" in error ? String(error.code) : "";
}
