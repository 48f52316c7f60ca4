import { existsSync } from "node:fs";
import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";
import { checkWhole, refuseBackup, StorageReader } from "../file/storage-reader.ts";
import { takeOwnership } from "../file-access/ownership.ts";
import { tightenFiles } from "../file-access/private-files.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { copyRows, type Steps } from "./copy-rows.ts";
import { NewStorageFile, publish, refuseExisting } from "./new-storage-file.ts";
import { type Built, buildRestored, type RestoreOrder } from "./restore-build.ts";
import {
	completeRestore,
	forgetDecided,
	removeLeftovers,
	replaceStorage,
	restoringPath,
} from "./restore-swap.ts";

/** What there is to do with a closed file. */
export type FileJob =
	| ({ readonly kind: "backup" } & BackupOrder)
	| ({ readonly kind: "restore" } & RestoreOrder)
	/** The part of a restore that leaves the storage alone, which is open. */
	| ({ readonly kind: "build" } & RestoreOrder);

/** What a backup is to do. */
export interface BackupOrder {
	/** The storage; see `realPathOf`. */
	readonly path: string;
	/** The name of the backup. */
	readonly to: string;
	/** The clock, in milliseconds since 1970. */
	readonly nowMs: number;
	/** Nobody else uses this ULID: it is part of the backup's name while it is made. */
	readonly fresh: FreshIds;
}

/** What has come of a job. */
export interface FileJobResult extends Built {
	/** The name of what was replaced. */
	readonly replaced?: string | undefined;
}

/** Does a job. @throws StorageFileError; the signal's reason. */
export function runFileJob(job: FileJob, steps: Steps): Promise<FileJobResult> {
	switch (job.kind) {
		case "backup":
			return backup(job, steps);
		case "restore":
			return restore(job, steps);
		case "build":
			return buildRestored(job, steps);
	}
}

/** The name of a backup while it is made. */
export function partialPath({ to, fresh }: Pick<BackupOrder, "to" | "fresh">): string {
	return `${to}.partial-${fresh.incarnation}`;
}

/** The identity of a backup of a storage. */
export function backupIdentity(
	of: StoredIdentity | undefined,
	{ fresh, nowMs }: Pick<BackupOrder, "fresh" | "nowMs">,
): StoredIdentity {
	return { ...(of ?? { ...fresh, restores: 0 }), backupMs: nowMs };
}

async function backup(order: BackupOrder, steps: Steps): Promise<FileJobResult> {
	refuseExisting(order.to);
	refuseMissing(order.path);
	const ownership = takeOwnership(order.path);
	try {
		completeRestore(order.path);
		const reader = new StorageReader(order.path);
		try {
			refuseBackup(order.path, reader.identity);
			tightenFiles(order.path);
			const identity = backupIdentity(reader.identity, order);
			const target = new NewStorageFile(partialPath(order), identity, order.path);
			try {
				await copyRows(reader, target, steps);
				await target.finish(reader.head.revision);
				publish(target.path, order.to);
				return { head: reader.head, identity };
			} finally {
				target.discard();
			}
		} finally {
			reader.close();
		}
	} finally {
		ownership.release();
	}
}

async function restore(order: RestoreOrder, steps: Steps): Promise<FileJobResult> {
	refuseMissing(order.from);
	const ownership = takeOwnership(order.path);
	try {
		completeOrForget(order.path);
		try {
			const built = await buildRestored(order, steps);
			checkWhole(restoringPath(order.path));
			steps.signal.throwIfAborted();
			const replaced = replaceStorage(order.path);
			tightenFiles(order.path);
			return { ...built, replaced };
		} finally {
			removeLeftovers(order.path);
		}
	} finally {
		ownership.release();
	}
}

/** What an earlier restore has left under way. What can't be read is replaced now anyway. */
function completeOrForget(path: string): void {
	try {
		completeRestore(path);
	} catch (error) {
		if (!(error instanceof StorageFileError) || error.problem !== "damaged") {
			throw error;
		}
		forgetDecided(path);
	}
}

function refuseMissing(path: string): void {
	if (!existsSync(path)) {
		throw new StorageFileError(path, "unreachable", "there is no such file");
	}
}
