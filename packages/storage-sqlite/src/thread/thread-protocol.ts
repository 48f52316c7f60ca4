import type { FileJobResult } from "../backup-restore/file-jobs.ts";
import type { EventPage, EventWrite } from "../file/event-table.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { FreshIds } from "../file/migrations.ts";
import type { RowWrite } from "../file/row-table.ts";
import type { Page } from "../loading/page.ts";
import type { StorageFileProblem } from "../storage-file-error.ts";

/**
 * The protocol between the backend and its worker:
 *
 * ```
 *   backend                                worker
 *      │  ◀── opened (revision, count) ───── │   or open-failed, and the worker ends
 *      │ ──── next-pages ──────────────────▶ │   until
 *      │  ◀── pages ──────────────────────── │
 *      │  ◀── loaded ─────────────────────── │   all rows were read, and the file is open for writing
 *      │ ──── write (revision, rows) ──────▶ │   one at a time
 *      │  ◀── written, or write-failed ───── │
 *      │ ──── write-events (rows) ─────────▶ │   between writes
 *      │  ◀── written, or write-failed ───── │
 *      │ ──── read-events (after) ─────────▶ │   between writes
 *      │  ◀── events, or read-failed ─────── │
 *      │ ──── replace ─────────────────────▶ │   between writes: a built file replaces this one
 *      │  ◀── replaced, or replace-failed ── │
 *      │ ──── close ───────────────────────▶ │   the worker ends
 *
 *      │  ◀── disk-failed ────────────────── │   at any time, once; all later writes fail
 *
 *      │ ──── backup ──────────────────────▶ │   concurrently, one at a time
 *      │  ◀── backup-progress ────────────── │   periodically
 *      │ ──── abort-backup ────────────────▶ │   optional
 *      │  ◀── backup-ended ───────────────── │
 * ```
 */
export type Request =
	| { readonly kind: "next-pages" }
	| { readonly kind: "write"; readonly revision: number; readonly rows: readonly RowWrite[] }
	| ({ readonly kind: "write-events" } & EventWrite)
	| {
			readonly kind: "read-events";
			readonly nowMs: number;
			readonly after: string | undefined;
	  }
	| { readonly kind: "replace" }
	| ({ readonly kind: "backup" } & LiveBackupOrder)
	| { readonly kind: "abort-backup" }
	| { readonly kind: "close" };

/** The parameters of a backup of an open storage. */
export interface LiveBackupOrder {
	/** The name of the backup. */
	readonly to: string;
	/** The current time, in milliseconds since 1970. */
	readonly nowMs: number;
	/** New ULIDs. */
	readonly fresh: FreshIds;
}

/** A reply of the worker. */
export type Reply =
	| {
			readonly kind: "opened";
			readonly revision: number;
			readonly resources: number;
			/** Absent only in files of schema version 1 that are opened for reading. */
			readonly identity: StoredIdentity | undefined;
			/** Files of the storage whose permissions could not be tightened. */
			readonly readableByOthers: readonly string[];
	  }
	| {
			readonly kind: "open-failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly reason: string;
	  }
	| { readonly kind: "pages"; readonly pages: readonly Page[] }
	| { readonly kind: "loaded" }
	| { readonly kind: "written" }
	| {
			readonly kind: "write-failed";
			readonly reason: string;
			/** Nothing was written, and the next write may succeed. */
			readonly diskFull: boolean;
			/** Nothing was written, because of the table of events: other writes may succeed. */
			readonly eventTable: boolean;
	  }
	| { readonly kind: "events"; readonly page: EventPage }
	| { readonly kind: "read-failed"; readonly reason: string }
	| { readonly kind: "replaced"; readonly replaced: string | undefined }
	| {
			readonly kind: "replace-failed";
			readonly reason: string;
			/** The old storage is still in place, and open. */
			readonly undone: boolean;
	  }
	| DiskFailed
	| BackupReply;

/** A message of the worker, independent of requests: the disk has failed, though not at a write that was requested. */
export interface DiskFailed {
	readonly kind: "disk-failed";
	readonly reason: string;
}

/** A message of the worker about a backup, independent of other requests. */
export type BackupReply =
	| { readonly kind: "backup-progress"; readonly resources: number; readonly total: number }
	| { readonly kind: "backup-ended"; readonly outcome: BackupOutcome };

/** The outcome of a backup. Unless it is done, nothing is left of it. */
export type BackupOutcome =
	| { readonly kind: "done"; readonly result: FileJobResult }
	| { readonly kind: "aborted" }
	| {
			readonly kind: "failed";
			readonly path: string;
			readonly problem: StorageFileProblem;
			readonly reason: string;
	  };

/** The input of the worker. */
export interface WorkerInput {
	/** See `realPathOf`. */
	readonly path: string;
	/** Whether to own the file and write to it, or only to read a private file. */
	readonly mode: "own" | "read";
	/** For a new file, or one without an identity. */
	readonly fresh: FreshIds;
}
