import { newUlid } from "@plinth/resource";
import { type Runtime, systemRuntime } from "@plinth/runtime";
import type { StorageIdentity } from "@plinth/storage";
import type { FreshIds } from "../file/migrations.ts";
import { realPathOf } from "../file-access/file-system.ts";
import type { FileJobResult } from "./file-jobs.ts";
import { type CopyOptions, inFileThread } from "./file-thread.ts";

/** What a backup needs to know. */
export interface BackupOptions extends CopyOptions {
	/**
	 * The file that it becomes. There must be none yet, and there is none before it is whole and on
	 * disk. While it is made it is called `<to>.partial-…`, which only a killed process leaves behind.
	 */
	readonly to: string;
}

/** What a restore needs to know. */
export interface RestoreOptions extends CopyOptions {
	/** A backup; or the file of a storage that nobody has open. */
	readonly from: string;
	/**
	 * The newest version that the storage is known to have given out. For the case that its file is lost
	 * and the clock of this machine can't be trusted: see `StorageFileProblem` `clock`.
	 */
	readonly newestVersion?: string;
}

/** What a backup holds. */
export interface BackupReport {
	readonly path: string;
	/** The newest version that it holds. */
	readonly version: string;
	/** How many resources. */
	readonly resources: number;
	/** Of what storage. */
	readonly identity: StorageIdentity;
}

/** What a restore has done. */
export interface RestoreReport {
	/** The version that all resources have now: later than any that was given out before. */
	readonly version: string;
	/** How many resources there are. */
	readonly resources: number;
	/** What the storage is from now on. */
	readonly identity: StorageIdentity;
	/** Where what was replaced is kept, for whoever wants it back; absent if there was nothing. */
	readonly replaced?: string;
}

/** The storage, which nobody has open. */
export interface ClosedStorage {
	readonly path: string;
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
}

/**
 * Backs up a storage that nobody has open; one that is open does it itself (`SqliteBackend.backup`).
 *
 * @throws StorageFileError
 */
export async function backupFile(options: ClosedStorage & BackupOptions): Promise<BackupReport> {
	const { path, to, runtime = systemRuntime } = options;
	const order = { path: realPathOf(path), to: realPathOf(to), ...drawn(runtime) };
	return backupReport(order.to, await inFileThread({ kind: "backup", ...order }, options));
}

/**
 * Puts a backup in the place of a storage that nobody has open, or that is lost. All of the backup is
 * checked before anything is replaced. Killed at any instant, it leaves the old storage or the new one;
 * what was replaced is kept under another name.
 *
 * All resources get a new version, later than any that the storage, or what the backup was taken of,
 * has given out; see `raisedRevision`.
 *
 * @throws StorageFileError
 */
export async function restoreFile(options: ClosedStorage & RestoreOptions): Promise<RestoreReport> {
	const { path, runtime = systemRuntime } = options;
	const order = {
		path: realPathOf(path),
		from: realPathOf(options.from),
		newestRevision: revisionOf(options.newestVersion),
		...drawn(runtime),
	};
	return restoreReport(await inFileThread({ kind: "restore", ...order }, options));
}

/** Two new ids. */
export function freshIds(runtime: Runtime): FreshIds {
	return { uid: newUlid(runtime), incarnation: newUlid(runtime) };
}

/** What a job needs of the world: the time, and ids that nobody else has. */
export function drawn(runtime: Runtime): { readonly nowMs: number; readonly fresh: FreshIds } {
	return { nowMs: Math.floor(runtime.clock.now()), fresh: freshIds(runtime) };
}

/** The revision that a version is; `undefined` for none. */
export function revisionOf(version: string | undefined): number | undefined {
	if (version === undefined) {
		return undefined;
	}
	const revision = /^\d+$/.test(version) ? Number(version) : Number.NaN;
	if (!Number.isSafeInteger(revision)) {
		throw new RangeError(`${JSON.stringify(version)} is no version of a SQLite storage`);
	}
	return revision;
}

/** What a backup has become. */
export function backupReport(path: string, { head, identity }: FileJobResult): BackupReport {
	return {
		path,
		version: String(head.revision),
		resources: head.resources,
		identity: identityOf(identity),
	};
}

/** What a restore has become. */
export function restoreReport({ head, identity, replaced }: FileJobResult): RestoreReport {
	return {
		version: String(head.revision),
		resources: head.resources,
		identity: identityOf(identity),
		...(replaced !== undefined && { replaced }),
	};
}

/** The identity, without what only files know. */
export function identityOf({
	uid,
	incarnation,
	restores,
	restored,
}: StorageIdentity): StorageIdentity {
	return { uid, incarnation, restores, ...(restored && { restored }) };
}
