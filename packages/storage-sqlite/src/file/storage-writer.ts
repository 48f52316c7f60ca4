import { DatabaseSync } from "node:sqlite";
import type { Head } from "./checksum.ts";
import { type EventWrite, writeEvents } from "./event-table.ts";
import { FreeSpace } from "./free-space.ts";
import { RowTable, type RowWrite } from "./row-table.ts";
import { isDiskFull, isInUse, isOfStatement, reasonOf } from "./sqlite-failure.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

/** The table of events can't be written. Nothing was written, and the disk has not failed. */
export class EventTableFailure extends Error {
	override readonly name = "EventTableFailure";
}

/**
 * Writes to a storage that was read and checked. When `write` has returned, the rows are on disk: the log of
 * the transaction was synced (`synchronous=FULL`). When it has thrown, nothing was written, unless the
 * disk itself failed.
 */
export class StorageWriter {
	readonly #database: DatabaseSync;
	readonly #rows: RowTable;
	readonly #log: WriteAheadLog;
	#head: Head;
	/** The pages that no resource uses. */
	readonly space: FreeSpace;

	constructor(path: string, head: Head) {
		this.#head = head;
		this.#database = openForWriting(path);
		this.#database.exec(`PRAGMA wal_autocheckpoint = ${4 * checkpointPages}`);
		this.#rows = new RowTable(this.#database);
		this.space = new FreeSpace(this.#database);
		const pageBytes = this.#database.prepare("PRAGMA page_size").get()?.page_size;
		this.#log = new WriteAheadLog(path, Number(pageBytes));
	}

	/** The head on disk. */
	get head(): Head {
		return this.#head;
	}

	/** The connection, for reading between transactions; no other connection has access to the file. */
	get database(): DatabaseSync {
		return this.#database;
	}

	/** Writes rows, each with a different key, and the new revision of the storage. */
	write(revision: number, rows: readonly RowWrite[]): void {
		this.#head = this.#transaction(() => {
			const next: Head = { revision, ...this.#rows.write(rows, this.#head) };
			this.#rows.setHead(next);
			return next;
		});
	}

	/**
	 * Writes rows of events, which changes neither the head nor a resource.
	 *
	 * @throws EventTableFailure, after which other writes may succeed.
	 */
	writeEvents(write: EventWrite): void {
		this.#transaction(() => {
			try {
				writeEvents(this.#database, write);
			} catch (error) {
				// An error of COMMIT or ROLLBACK is not caught here: it leaves the content of the disk unknown.
				throw isOfStatement(error)
					? new EventTableFailure(reasonOf(error), { cause: error })
					: error;
			}
		});
	}

	/**
	 * Moves the write-ahead log into the main file if it is long. Call it after each write, and once that was acknowledged.
	 * SQLite would do so in the COMMIT, and ignore that it fails: the log would grow without a limit.
	 *
	 * @throws if the main file can't be written or synced; not if the disk is full, since it may have room again later.
	 */
	checkpointIfLong(): void {
		if (!this.#log.hasFrames(checkpointPages)) {
			return;
		}
		try {
			this.space.checkpoint();
		} catch (error) {
			if (!(isDiskFull(error) || isInUse(error))) {
				throw error;
			}
		}
	}

	/** Moves the write-ahead log into the main file and closes it. */
	close(): void {
		this.#log.close();
		this.#database.close();
	}

	#transaction<T>(action: () => T): T {
		this.#database.exec("BEGIN IMMEDIATE");
		try {
			const result = action();
			this.#database.exec("COMMIT");
			return result;
		} catch (error) {
			if (this.#database.isTransaction) {
				this.#database.exec("ROLLBACK");
			}
			throw error;
		}
	}
}

/**
 * The size of the write-ahead log, in pages, at which it is moved into the main file: 16 MiB. A larger value means fewer but
 * longer pauses, and a longer recovery. A StorageWriter for which nobody calls `checkpointIfLong` does it at four times
 * that size.
 */
const checkpointPages = 4096;

/** Opens a storage for writing. Committed transactions are on disk. */
export function openForWriting(path: string): DatabaseSync {
	const database = new DatabaseSync(path, { timeout: 0 });
	try {
		// Exclusive before the first access: then the index of the write-ahead log is in the memory of this
		// process, and no other process can open the file.
		database.exec("PRAGMA locking_mode = EXCLUSIVE");
		database.exec("PRAGMA journal_mode = WAL");
		database.exec("PRAGMA synchronous = FULL");
		database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
		return database;
	} catch (error) {
		database.close();
		throw error;
	}
}
