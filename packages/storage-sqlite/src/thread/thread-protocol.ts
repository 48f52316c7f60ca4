import type { FileJobResult } from "../backup-restore/file-jobs.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";
import type { RowWrite } from "../file/row-table.ts";
import type { Page } from "../loading/page.ts";
import type { StorageFileProblem } from "../storage-file-error.ts";

/**
 * What the backend and its worker say to each other:
 *
 * ```
 *   backend                                worker
 *      │  ◀── opened (revision, count) ───── │   or open-failed, and the worker ends
 *      │ ──── next-page ───────────────────▶ │   until
 *      │  ◀── page        ────────────────── │
 *      │  ◀── loaded ─────────────────────── │   all was read, and the file is open for writing
 *      │ ──── write (revision, rows) ──────▶ │   one at a time
 *      │  ◀── written, or write-failed ───── │
 *      │ ──── replace ─────────────────────▶ │   between writes: a built file takes the place
 *      │  ◀── replaced, or replace-failed ── │
 *      │ ──── close ───────────────────────▶ │   the worker ends
 *
 *      │ ──── backup ──────────────────────▶ │   beside all that, one at a time
 *      │  ◀── backup-progress ────────────── │   now and then
 *      │ ──── abort-backup ────────────────▶ │   perhaps
 *      │  ◀── backup-ended ───────────────── │
 * ```
 */
export type Request =
	| { readonly kind: "next-page" }
	| { readonly kind: "write"; readonly revision: number; readonly rows: readonly RowWrite[] }
	| { readonly kind: "replace" }
	| ({ readonly kind: "backup" } & LiveBackupOrder)
	| { readonly kind: "abort-backup" }
	| { readonly kind: "close" };

/** What a backup of an open storage is to do. */
export interface LiveBackupOrder {
	/** The name of the backup. */
	readonly to: string;
	/** The clock, in milliseconds since 1970. */
	readonly nowMs: number;
	/** Nobody else uses these ULIDs. */
	readonly fresh: FreshIds;
}

/** What the worker answers. */
export type Reply =
	| {
			readonly kind: "opened";
			readonly revision: number;
			readonly resources: number;
			/** Absent only where nothing is written, in files of schema version 1. */
			readonly identity: StoredIdentity | undefined;
			/** Files of the storage whose permissions could not be tightened. */
			readonly readableByOthers: readonly string[];
	  }
	| {
			readonly kind: "open-failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly why: string;
	  }
	| { readonly kind: "page"; readonly page: Page }
	| { readonly kind: "loaded" }
	| { readonly kind: "written" }
	| {
			readonly kind: "write-failed";
			readonly why: string;
			/** Nothing of it was written, and the next write may succeed. */
			readonly diskFull: boolean;
	  }
	| { readonly kind: "replaced"; readonly replaced: string | undefined }
	| {
			readonly kind: "replace-failed";
			readonly why: string;
			/** The old storage is still in place, and open. */
			readonly undone: boolean;
	  }
	| BackupReply;

/** What the worker says of a backup, whatever else it is asked. */
export type BackupReply =
	| { readonly kind: "backup-progress"; readonly resources: number; readonly of: number }
	| { readonly kind: "backup-ended"; readonly outcome: BackupOutcome };

/** How a backup has ended. Unless it is done, nothing is left of it. */
export type BackupOutcome =
	| { readonly kind: "done"; readonly result: FileJobResult }
	| { readonly kind: "aborted" }
	| {
			readonly kind: "failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly why: string;
	  };

/** What the worker is started with. */
export interface WorkerInput {
	/** See `realPathOf`. */
	readonly path: string;
	/** Whether to own the file and write to it, or only to read one that nobody else knows. */
	readonly mode: "own" | "read";
	/** For a file that is made, or has no identity yet. */
	readonly fresh: FreshIds;
}
