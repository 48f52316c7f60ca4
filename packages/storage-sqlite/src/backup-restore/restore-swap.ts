import { constants, copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkHeader } from "../file/file-header.ts";
import { fileError } from "../file/sqlite-failure.ts";
import { StorageReader } from "../file/storage-reader.ts";
import { syncToDisk } from "../file-access/file-system.ts";
import { lacksLinks } from "./new-storage-file.ts";

/** The file that a restore builds. A leftover of one that was killed means nothing. */
export function restoringPath(path: string): string {
	return `${path}.restoring`;
}

/** The built file, once it is whole: from then on the restore is decided. */
function restoredPath(path: string): string {
	return `${path}.restored`;
}

/**
 * Puts a built file in the place of a storage, which must be closed, with its ownership held.
 *
 * ```
 *   .restoring ──rename──▶ .restored    from here on, whoever opens the storage completes the restore
 *   storage, -wal ──link──▶ .replaced-…, .replaced-…-wal
 *   -wal, -shm    removed               SQLite would take them for the new file's
 *   .restored  ──rename──▶ storage
 * ```
 *
 * Each step is on disk before the next, and can be taken again. Before the first, a kill leaves the old
 * storage; after it, the new one, from the next opening on. What was replaced stays either way.
 *
 * @returns The name of what was replaced, if there was something.
 * @throws StorageFileError
 */
export function replaceStorage(path: string): string | undefined {
	decideRestore(path);
	return completeRestore(path);
}

/** The first step. When it has thrown, nothing has happened. */
export function decideRestore(path: string): void {
	try {
		renameSync(restoringPath(path), restoredPath(path));
	} catch (error) {
		throw fileError(path, error);
	}
}

/**
 * Takes the steps after the first, if a restore was decided and is not complete. To be called, with the
 * ownership held, before a storage is read.
 *
 * @throws StorageFileError
 */
export function completeRestore(path: string): string | undefined {
	const restored = restoredPath(path);
	if (!existsSync(restored)) {
		rollBackJournal(path);
		return undefined;
	}
	try {
		const directory = dirname(path);
		syncToDisk(directory);
		const aside = `${path}.replaced-${incarnationOf(restored)}`;
		for (const suffix of ["", "-wal", "-journal"]) {
			keep(path + suffix, aside + suffix);
		}
		syncToDisk(directory);
		for (const suffix of ["-wal", "-shm", "-journal"]) {
			rmSync(path + suffix, { force: true });
		}
		syncToDisk(directory);
		renameSync(restored, path);
		syncToDisk(directory);
		return existsSync(aside) ? aside : undefined;
	} catch (error) {
		throw fileError(path, error);
	}
}

/**
 * Lets SQLite undo a change that a kill has interrupted outside of the write-ahead log: the first
 * opening of a new file, which changes it to that log. A read-only connection refuses such a file.
 */
function rollBackJournal(path: string): void {
	if (!existsSync(`${path}-journal`)) {
		return;
	}
	try {
		checkHeader(path);
		const database = new DatabaseSync(path, { timeout: 0 });
		try {
			database.prepare("SELECT count(*) FROM head").get();
		} finally {
			database.close();
		}
	} catch {
		// Whoever reads the file next says what is wrong with it.
	}
}

/** Removes what restores that were killed before they were decided have left. */
export function removeLeftovers(path: string): void {
	for (const suffix of ["", "-wal", "-shm", "-journal"]) {
		rmSync(restoringPath(path) + suffix, { force: true });
	}
}

/** Removes a built file that can't be read: for a restore that replaces everything anyway. */
export function forgetDecided(path: string): void {
	rmSync(restoredPath(path), { force: true });
}

function incarnationOf(path: string): string {
	const reader = new StorageReader(path);
	reader.close();
	if (reader.identity === undefined) {
		throw new Error("a restored file has an identity");
	}
	return reader.identity.incarnation;
}

/** Gives a file a second name, which it may have already. */
function keep(path: string, aside: string): void {
	if (!existsSync(path) || existsSync(aside)) {
		return;
	}
	try {
		linkSync(path, aside);
	} catch (error) {
		if (!lacksLinks(error)) {
			throw error;
		}
		rmSync(`${aside}.partial`, { force: true });
		copyFileSync(path, `${aside}.partial`, constants.COPYFILE_EXCL);
		syncToDisk(`${aside}.partial`);
		renameSync(`${aside}.partial`, aside);
	}
}
