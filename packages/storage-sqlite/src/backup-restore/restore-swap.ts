import { constants, copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkHeader } from "../file/file-header.ts";
import { fileError } from "../file/sqlite-failure.ts";
import { StorageReader } from "../file/storage-reader.ts";
import { syncToDisk } from "../file-access/file-system.ts";
import { lacksLinks } from "./new-storage-file.ts";

/** The file that a restore builds. A leftover of a killed restore is ignored. */
export function restoringPath(path: string): string {
	return `${path}.restoring`;
}

/** The built file, once it is complete: from then on the restore is decided. */
function restoredPath(path: string): string {
	return `${path}.restored`;
}

/**
 * Replaces a storage by a built file. The storage must be closed, and its ownership held.
 *
 * ```
 *   .restoring ──rename──▶ .restored    from here on, opening the storage completes the restore
 *   storage, -wal ──link──▶ .replaced-…, .replaced-…-wal
 *   -wal, -shm    removed               SQLite would apply them to the new file
 *   .restored  ──rename──▶ storage
 * ```
 *
 * Each step is on disk before the next, and can be repeated. A kill before the first step leaves the old
 * storage; after it, the next opening completes the new one. The replaced storage is kept either way.
 *
 * @returns The path of the replaced storage, if there was one.
 * @throws StorageFileError
 */
export function replaceStorage(path: string): string | undefined {
	decideRestore(path);
	return completeRestore(path);
}

/** The first step. If it throws, nothing has changed. */
export function decideRestore(path: string): void {
	try {
		renameSync(restoringPath(path), restoredPath(path));
	} catch (error) {
		throw fileError(path, error);
	}
}

/**
 * Runs the steps after the first, if a restore was decided and is incomplete. Call it before a storage is
 * read, with the ownership held.
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
 * Lets SQLite roll back a change outside of the write-ahead log that a kill has interrupted: switching a new
 * file to that log when it is first opened. A read-only connection refuses such a file.
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
		// The next reader of the file reports what is wrong with it.
	}
}

/** Removes the leftovers of restores that were killed before they were decided. */
export function removeLeftovers(path: string): void {
	for (const suffix of ["", "-wal", "-shm", "-journal"]) {
		rmSync(restoringPath(path) + suffix, { force: true });
	}
}

/** Removes a built file that can't be read, before a restore that replaces it anyway. */
export function discardDecided(path: string): void {
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

/** Gives a file a second name, unless it already has it. */
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
