import { existsSync } from "node:fs";
// Alone: this runs in a thread of each restore, which would load all of the package for it.
import { firstRevisionAfterRestore } from "@plinth/storage/first-revision-after-restore";
import type { Head } from "../file/checksum.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";
import { StorageReader } from "../file/storage-reader.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { copyRows, type Steps } from "./copy-rows.ts";
import { NewStorageFile } from "./new-storage-file.ts";
import { removeLeftovers, restoringPath } from "./restore-swap.ts";

/** The parameters of a restore. */
export interface RestoreOrder {
	/** The storage to replace; see `realPathOf`. */
	readonly path: string;
	/** A backup, or a closed storage. */
	readonly from: string;
	/** The current time, in milliseconds since 1970. */
	readonly nowMs: number;
	readonly fresh: FreshIds;
	/** The newest revision known to have been issued, if any; then the clock need not be trusted. */
	readonly newestRevision?: number | undefined;
	/** The storage to replace, if it is open and so can't be read here. */
	readonly replaced?: Replaced | undefined;
}

/** The revision and identity of the storage to replace. */
export interface Replaced {
	readonly revision: number;
	readonly identity: StoredIdentity | undefined;
}

/** The head and identity of the built file. */
export interface Built {
	readonly head: Head;
	readonly identity: StoredIdentity;
}

/**
 * Builds the file that will replace a storage: the resources of the backup, all at one revision that is
 * greater than any ever issued. The whole backup is checked while doing so. Neither the backup nor the
 * storage is changed.
 *
 * @throws StorageFileError; the signal's reason.
 */
export async function buildRestored(order: RestoreOrder, steps: Steps): Promise<Built> {
	const { path, from, nowMs, fresh } = order;
	const replaced = order.replaced ?? inspect(path);
	const reader = new StorageReader(from, "backup");
	try {
		const was = reader.identity;
		const sameStorage = was !== undefined && was.uid === replaced?.identity?.uid;
		const revision = raise(order, reader, replaced, sameStorage);
		const identity: StoredIdentity = {
			uid: was?.uid ?? fresh.uid,
			incarnation: fresh.incarnation,
			restores: 1 + Math.max(was?.restores ?? 0, sameStorage ? replaced.identity.restores : 0),
			restored: {
				fromIncarnation: was?.incarnation ?? "",
				fromVersion: String(reader.head.revision),
				version: String(revision),
				atMs: nowMs,
			},
		};
		removeLeftovers(path);
		const target = new NewStorageFile(
			restoringPath(path),
			identity,
			existsSync(path) ? path : from,
		);
		try {
			await copyRows(reader, target, steps, revision);
			await target.finish(revision);
			return { head: { revision, ...target.tally }, identity };
		} catch (error) {
			target.discard();
			throw error;
		}
	} finally {
		reader.close();
	}
}

function raise(
	{ path, nowMs, newestRevision }: RestoreOrder,
	backup: StorageReader,
	replaced: Replaced | undefined,
	sameStorage: boolean,
): number {
	const seenMs = [
		backup.identity?.backupMs,
		backup.identity?.restored?.atMs,
		replaced?.identity?.restored?.atMs,
	];
	const latestMs = Math.max(...seenMs.map((ms) => ms ?? 0));
	// The backup was taken from the storage to replace, so all issued revisions are known.
	const trustsClock = newestRevision === undefined && !sameStorage;
	if (trustsClock && nowMs < latestMs) {
		throw clockError(
			path,
			`the clock is at ${new Date(nowMs).toISOString()}, but the backup or the storage was written at ${new Date(latestMs).toISOString()}. Set the clock, since new versions are derived from it, or give the newest version that the storage is known to have issued`,
		);
	}
	const known = [backup.head.revision, replaced?.revision, newestRevision];
	const raised = firstRevisionAfterRestore(
		nowMs,
		known.filter((revision) => revision !== undefined),
	);
	if (raised === undefined) {
		throw clockError(
			path,
			`the clock is at ${new Date(nowMs).toISOString()}: versions derived from it would run out`,
		);
	}
	return raised;
}

function clockError(path: string, why: string): StorageFileError {
	return new StorageFileError(path, "clock", `not restored: ${why}`);
}

/**
 * The revision and identity of a closed storage, if it can be read.
 *
 * @throws StorageFileError if it may be intact, but can't be read now.
 */
function inspect(path: string): Replaced | undefined {
	if (!existsSync(path)) {
		return undefined;
	}
	let reader: StorageReader;
	try {
		reader = new StorageReader(path);
	} catch (error) {
		if (
			error instanceof StorageFileError &&
			["in-use", "unreachable", "disk-full"].includes(error.problem)
		) {
			throw error;
		}
		return undefined;
	}
	reader.close();
	return { revision: reader.head.revision, identity: reader.identity };
}
