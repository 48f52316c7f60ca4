import type { DatabaseSync, StatementSync } from "node:sqlite";
import { rowChecksum } from "../file/checksum.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { RowWrite } from "../file/row-table.ts";
import type { StorageWriter } from "../file/storage-writer.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { NewStorageFile } from "./new-storage-file.ts";

/** Rows and bytes of a slice at most: what a commit may have to wait for, a millisecond or two. */
const sliceRows = 256;
const sliceBytes = 256 * 1024;

/**
 * A backup of a storage that is being written to, taken between its commits.
 *
 * ```
 *   storage   a b c d e f g h …            slices go by key, from the beginning to the end
 *             ═══════╪─ ─ ─ ─ ─
 *   backup    a b c d│                     a commit changes b and g: b is changed in the backup
 *                 reached                  too, g is copied when its turn comes
 * ```
 *
 * So the copied part is always what the storage holds there now, and when the end is reached the
 * backup is the storage as of its newest commit. Each row's checksum is checked on the way, and in
 * the end the digest of all, so that a damaged storage does not make a well-looking backup.
 */
export class LiveBackup {
	readonly #path: string;
	readonly #source: StorageWriter;
	readonly #target: NewStorageFile;
	readonly #select: StatementSync;
	#reached = "";
	#reachedBytes = Buffer.alloc(0);
	#failure: unknown;

	/**
	 * @param path The storage.
	 * @param partial The name of the backup while it is made.
	 * @param rows Rows of a slice at most.
	 * @throws StorageFileError
	 */
	constructor(
		path: string,
		source: StorageWriter,
		partial: string,
		identity: StoredIdentity,
		rows = sliceRows,
	) {
		this.#path = path;
		this.#source = source;
		this.#select = slices(source.database, rows);
		this.#target = new NewStorageFile(partial, identity, path);
	}

	/** How many rows are copied. */
	get resources(): number {
		return this.#target.tally.resources;
	}

	/**
	 * Copies the next slice.
	 *
	 * @returns Whether there was one.
	 * @throws StorageFileError
	 */
	step(): boolean {
		if (this.#failure !== undefined) {
			throw this.#failure;
		}
		const rows: RowWrite[] = [];
		let bytes = 0;
		for (const { key, revision, body, checksum } of this.#select.iterate(this.#reached)) {
			if (
				typeof key !== "string" ||
				typeof revision !== "number" ||
				!(body instanceof Uint8Array) ||
				rowChecksum({ key, revision, body }) !== checksum
			) {
				throw this.#damaged(`the row of ${String(key)} does not match its checksum`);
			}
			rows.push({ key, revision, body });
			bytes += body.byteLength;
			if (bytes >= sliceBytes) {
				break;
			}
		}
		const last = rows.at(-1);
		if (last === undefined) {
			return false;
		}
		this.#target.write(rows);
		this.#reached = last.key;
		this.#reachedBytes = Buffer.from(last.key);
		return true;
	}

	/** Takes in what a commit has changed. A failure is thrown by the next step, not at the commit. */
	follow(rows: readonly RowWrite[]): void {
		try {
			// SQLite compares keys by their bytes.
			this.#target.write(
				rows.filter(({ key }) => Buffer.compare(Buffer.from(key), this.#reachedBytes) <= 0),
			);
		} catch (error) {
			this.#failure ??= error;
		}
	}

	/**
	 * Completes the backup, once there are no more slices. From the call on it follows no commits.
	 *
	 * @returns Its revision.
	 * @throws StorageFileError
	 */
	async finish(): Promise<number> {
		const { revision, resources, digest } = this.#source.head;
		const { tally } = this.#target;
		if (this.#failure !== undefined) {
			throw this.#failure;
		}
		if (tally.resources !== resources || tally.digest !== digest) {
			throw this.#damaged("its rows are not those that its head vouches for");
		}
		await this.#target.finish(revision);
		return revision;
	}

	/** Removes what there is of the backup. */
	discard(): void {
		this.#target.discard();
	}

	#damaged(why: string): StorageFileError {
		return new StorageFileError(this.#path, "damaged", `no backup was made: ${why}`);
	}
}

function slices(database: DatabaseSync, rows: number): StatementSync {
	return database.prepare(
		`SELECT key, revision, body, checksum FROM resources WHERE key > ? ORDER BY key LIMIT ${rows}`,
	);
}
