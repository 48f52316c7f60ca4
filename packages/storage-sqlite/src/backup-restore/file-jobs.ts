import { existsSync } from "node:fs";
import { checkWhole, refuseBackup, StorageReader } from "../file/storage-reader.ts";
import { takeOwnership } from "../file-access/ownership.ts";
import { tightenFiles } from "../file-access/private-files.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { type BackupOrder, backupIdentity, partialPath } from "./backup-order.ts";
import { copyRows, type Steps } from "./copy-rows.ts";
import { NewStorageFile, publish, refuseExisting } from "./new-storage-file.ts";
import { type Built, buildRestored, type RestoreOrder } from "./restore-build.ts";
import {
	completeRestore,
	discardDecided,
	removeLeftovers,
	replaceStorage,
	restoringPath,
} from "./restore-swap.ts";

/** A backup or restore of a closed file. */
export type FileJob =
	| ({ readonly kind: "backup" } & BackupOrder)
	| ({ readonly kind: "restore" } & RestoreOrder)
	/** The first part of a restore of an open storage, which does not change it. */
	| ({ readonly kind: "build" } & RestoreOrder);

/** The result of a job. */
export interface FileJobResult extends Built {
	/** The path of the replaced storage. */
	readonly replaced?: string | undefined;
}

/** Runs a job. @throws StorageFileError; the signal's reason. */
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
	refuseMissing(order.from, "backup");
	const ownership = takeOwnership(order.path);
	try {
		completeOrDiscard(order.path);
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

/** Checks a whole backup. @throws StorageFileError. */
export function checkBackupFile(path: string): void {
	refuseMissing(path, "backup");
	checkWhole(path, "backup");
}

/** Completes an interrupted restore, or discards it if its file can't be read: it is replaced now anyway. */
function completeOrDiscard(path: string): void {
	try {
		completeRestore(path);
	} catch (error) {
		if (!(error instanceof StorageFileError) || error.problem !== "damaged") {
			throw error;
		}
		discardDecided(path);
	}
}

function refuseMissing(path: string, file: StorageFileError["file"] = "storage"): void {
	if (!existsSync(path)) {
		throw new StorageFileError(path, "unreachable", "the file does not exist", { file });
	}
}
