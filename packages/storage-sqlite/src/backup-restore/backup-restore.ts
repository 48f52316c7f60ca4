import { newUlid } from "@plinth/resource";
import { type Runtime, systemRuntime } from "@plinth/runtime";
import type { StorageIdentity } from "@plinth/storage";
import type { FreshIds } from "../file/migrations.ts";
import { realPathOf } from "../file-access/file-system.ts";
import type { FileJobResult } from "./file-jobs.ts";
import { type CopyOptions, inFileThread } from "./file-thread.ts";

/** Options of a backup. */
export interface BackupOptions extends CopyOptions {
	/**
	 * The path of the backup. The file must not exist, and appears only when it is complete and on disk.
	 * Until then it is called `<to>.partial-…`, which only a killed process leaves behind.
	 */
	readonly to: string;
}

/** Options of a restore. */
export interface RestoreOptions extends CopyOptions {
	/** A backup, or the file of a closed storage. */
	readonly from: string;
	/**
	 * The newest version that the storage is known to have issued, in case its file is lost and the clock of
	 * this machine can't be trusted; see `StorageFileProblem` `clock`.
	 */
	readonly newestVersion?: string;
}

/** The result of a backup. */
export interface BackupReport {
	readonly path: string;
	/** The newest version in the backup. */
	readonly version: string;
	/** The number of resources. */
	readonly resources: number;
	/** The identity of the storage. */
	readonly identity: StorageIdentity;
}

/** The result of a restore. */
export interface RestoreReport {
	/** The new version of all resources: later than any issued before. */
	readonly version: string;
	/** The number of resources. */
	readonly resources: number;
	/** The new identity of the storage. */
	readonly identity: StorageIdentity;
	/** The path of the replaced storage, which is kept; absent if there was none. */
	readonly replaced?: string;
}

/** A closed storage. */
export interface ClosedStorage {
	readonly path: string;
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
}

/**
 * Backs up a closed storage. For an open one, see `SqliteBackend.backup`.
 *
 * @throws StorageFileError
 */
export async function backupFile(options: ClosedStorage & BackupOptions): Promise<BackupReport> {
	const { path, to, runtime = systemRuntime } = options;
	const order = { path: realPathOf(path), to: realPathOf(to), ...timeAndIds(runtime) };
	return backupReport(order.to, await inFileThread({ kind: "backup", ...order }, options));
}

/**
 * Replaces a closed or lost storage by a backup. The whole backup is checked before anything is replaced.
 * Killed at any instant, it leaves the old storage or the new one; the replaced storage is kept under
 * another name.
 *
 * All resources get a new version, later than any that the storage, or the storage of the backup, has
 * issued; see `firstRevisionAfterRestore`.
 *
 * @throws StorageFileError
 */
export async function restoreFile(options: ClosedStorage & RestoreOptions): Promise<RestoreReport> {
	const { path, runtime = systemRuntime } = options;
	const order = {
		path: realPathOf(path),
		from: realPathOf(options.from),
		newestRevision: revisionOf(options.newestVersion),
		...timeAndIds(runtime),
	};
	return restoreReport(await inFileThread({ kind: "restore", ...order }, options));
}

/** Two new ids. */
export function freshIds(runtime: Runtime): FreshIds {
	return { uid: newUlid(runtime), incarnation: newUlid(runtime) };
}

/** The current time and new ids, for a backup or a restore. */
export function timeAndIds(runtime: Runtime): { readonly nowMs: number; readonly fresh: FreshIds } {
	return { nowMs: Math.floor(runtime.clock.now()), fresh: freshIds(runtime) };
}

/** The revision of a version; `undefined` for no version. */
export function revisionOf(version: string | undefined): number | undefined {
	if (version === undefined) {
		return undefined;
	}
	const revision = /^\d+$/.test(version) ? Number(version) : Number.NaN;
	if (!Number.isSafeInteger(revision)) {
		throw new RangeError(`${JSON.stringify(version)} is not a version of a SQLite storage`);
	}
	return revision;
}

/** The report of a finished backup. */
export function backupReport(path: string, { head, identity }: FileJobResult): BackupReport {
	return {
		path,
		version: String(head.revision),
		resources: head.resources,
		identity: identityOf(identity),
	};
}

/** The report of a finished restore. */
export function restoreReport({ head, identity, replaced }: FileJobResult): RestoreReport {
	return {
		version: String(head.revision),
		resources: head.resources,
		identity: identityOf(identity),
		...(replaced !== undefined && { replaced }),
	};
}

/** The identity without the properties that only files have. */
export function identityOf({
	uid,
	incarnation,
	restores,
	restored,
}: StorageIdentity): StorageIdentity {
	return { uid, incarnation, restores, ...(restored && { restored }) };
}
