import { existsSync } from "node:fs";
import { raisedRevision } from "@plinth/storage";
import type { Head } from "../file/checksum.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";
import { StorageReader } from "../file/storage-reader.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { copyRows, type Steps } from "./copy-rows.ts";
import { NewStorageFile } from "./new-storage-file.ts";
import { removeLeftovers, restoringPath } from "./restore-swap.ts";

/** What a restore is to do. */
export interface RestoreOrder {
	/** The storage that is replaced; see `realPathOf`. */
	readonly path: string;
	/** A backup, or a storage that is closed. */
	readonly from: string;
	/** The clock, in milliseconds since 1970. */
	readonly nowMs: number;
	readonly fresh: FreshIds;
	/** The newest revision that is known to have been given out; where it is given, no clock is trusted. */
	readonly newestRevision?: number | undefined;
	/** The storage that is replaced, where it is open: nobody else can read it then. */
	readonly replaced?: Replaced | undefined;
}

/** What is known of a storage that is replaced. */
export interface Replaced {
	readonly revision: number;
	readonly identity: StoredIdentity | undefined;
}

/** What a restore has built. */
export interface Built {
	readonly head: Head;
	readonly identity: StoredIdentity;
}

/**
 * Builds the file that will replace a storage: the resources of the backup, all of them at one
 * revision that is past any that was given out. All of the backup is checked on the way. Changes
 * neither the backup nor the storage.
 *
 * @throws StorageFileError; the signal's reason.
 */
export async function buildRestored(order: RestoreOrder, steps: Steps): Promise<Built> {
	const { path, from, nowMs, fresh } = order;
	const replaced = order.replaced ?? lookAt(path);
	const reader = new StorageReader(from);
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
	// What is replaced is what the backup was taken of, in its newest incarnation: nothing is unknown.
	const trustsClock = newestRevision === undefined && !sameStorage;
	if (trustsClock && nowMs < latestMs) {
		throw clockError(
			path,
			`the clock says ${new Date(nowMs).toISOString()}, but the backup or the storage is of ${new Date(latestMs).toISOString()}. Set the clock, since versions are raised by it; or give the newest version that the storage is known to have given out`,
		);
	}
	const known = [backup.head.revision, replaced?.revision, newestRevision];
	const raised = raisedRevision(
		nowMs,
		known.filter((revision) => revision !== undefined),
	);
	if (raised === undefined) {
		throw clockError(
			path,
			`the clock says ${new Date(nowMs).toISOString()}: versions that are raised to that would run out`,
		);
	}
	return raised;
}

function clockError(path: string, why: string): StorageFileError {
	return new StorageFileError(path, "clock", `not restored: ${why}`);
}

/**
 * What a closed storage says of itself, if it still can.
 *
 * @throws StorageFileError if it may be well, but can't be read now.
 */
function lookAt(path: string): Replaced | undefined {
	if (!existsSync(path)) {
		return undefined;
	}
	let reader: StorageReader;
	try {
		reader = new StorageReader(path);
	} catch (error) {
		if (
			error instanceof StorageFileError &&
			(error.problem === "in-use" || error.problem === "unreachable")
		) {
			throw error;
		}
		return undefined;
	}
	reader.close();
	return { revision: reader.head.revision, identity: reader.identity };
}
