import { DatabaseSync, type StatementSync } from "node:sqlite";
import { addToDigest, type Head, headChecksum, rowChecksum } from "./checksum.ts";

/** What a transaction does to one row. */
export interface RowWrite {
	readonly key: string;
	readonly revision: number;
	/** Absent where the row goes. */
	readonly body?: Uint8Array | undefined;
}

/**
 * Writes to a storage that was read and found well. When `write` has returned, what it was given is
 * on disk: the log of the transaction was synced (`synchronous=FULL`). When it has thrown, nothing
 * of it is there, unless the disk itself failed.
 */
export class StorageWriter {
	readonly #database: DatabaseSync;
	readonly #find: StatementSync;
	readonly #put: StatementSync;
	readonly #remove: StatementSync;
	readonly #setHead: StatementSync;
	#head: Head;

	constructor(path: string, head: Head) {
		this.#head = head;
		this.#database = new DatabaseSync(path, { timeout: 0 });
		// Exclusive before the first access: then the index of the write-ahead log is in this process's
		// memory, and nobody else gets in.
		this.#database.exec("PRAGMA locking_mode = EXCLUSIVE");
		this.#database.exec("PRAGMA journal_mode = WAL");
		this.#database.exec("PRAGMA synchronous = FULL");
		this.#database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
		this.#find = this.#database.prepare("SELECT checksum FROM resources WHERE key = ?");
		this.#put = this.#database.prepare(
			`INSERT INTO resources VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
				SET revision = excluded.revision, body = excluded.body, checksum = excluded.checksum`,
		);
		this.#remove = this.#database.prepare("DELETE FROM resources WHERE key = ?");
		this.#setHead = this.#database.prepare(
			"UPDATE head SET revision = ?, resources = ?, digest = ?, checksum = ? WHERE id = 1",
		);
	}

	/** Writes rows, each of another key, and the revision that the storage is at then. */
	write(revision: number, rows: readonly RowWrite[]): void {
		this.#database.exec("BEGIN IMMEDIATE");
		try {
			let { resources, digest } = this.#head;
			for (const row of rows) {
				const before = this.#find.get(row.key)?.checksum;
				const went = typeof before === "number" ? before : undefined;
				let came: number | undefined;
				if (row.body !== undefined) {
					const { key, body } = row;
					came = rowChecksum({ key, revision: row.revision, body });
					this.#put.run(key, row.revision, body, came);
				} else {
					this.#remove.run(row.key);
				}
				resources += Number(came !== undefined) - Number(went !== undefined);
				digest = addToDigest(digest, came ?? 0, went ?? 0);
			}
			const head: Head = { revision, resources, digest };
			this.#setHead.run(revision, resources, digest, headChecksum(head));
			this.#database.exec("COMMIT");
			this.#head = head;
		} catch (error) {
			if (this.#database.isTransaction) {
				this.#database.exec("ROLLBACK");
			}
			throw error;
		}
	}

	/** Moves the write-ahead log into the main file and closes it. */
	close(): void {
		this.#database.close();
	}
}

/**
 * Pages in the write-ahead log at which a commit moves them into the main file: 16 MiB. More means
 * fewer and longer pauses, and a longer recovery.
 */
const checkpointPages = 4096;
