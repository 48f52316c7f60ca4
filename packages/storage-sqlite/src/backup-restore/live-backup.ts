import type { DatabaseSync, StatementSync } from "node:sqlite";
import { rowChecksum } from "../file/checksum.ts";
import type { StoredIdentity } from "../file/identity.ts";
import type { RowWrite } from "../file/row-table.ts";
import type { StorageWriter } from "../file/storage-writer.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { NewStorageFile } from "./new-storage-file.ts";

/** The maximum of rows and bytes per slice, which delays a commit by a millisecond or two. */
const sliceRows = 256;
const sliceBytes = 256 * 1024;

/**
 * A backup of an open storage, copied between its commits.
 *
 * ```
 *   storage   a b c d e f g h …            slices go by key, from the beginning to the end
 *             ═══════╪─ ─ ─ ─ ─
 *   backup    a b c d│                     a commit changes b and g: b is changed in the backup
 *                 reached                  too, g is copied when its turn comes
 * ```
 *
 * So the copied part always equals that part of the storage, and at the end the backup equals the storage as
 * of its newest commit. The checksum of each row is checked while copying, and the digest of all rows at
 * the end, so that a damaged storage does not produce a valid backup.
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
	 * @param path The path of the storage.
	 * @param partial The temporary name of the backup.
	 * @param rows The maximum of rows per slice.
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

	/** The number of copied rows. */
	get resources(): number {
		return this.#target.tally.resources;
	}

	/**
	 * Copies the next slice.
	 *
	 * @returns Whether there was a slice to copy.
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

	/** Applies the changes of a commit. A failure is thrown by the next step, not by the commit. */
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
	 * Completes the backup when all slices are copied. From then on it does not follow commits.
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
			throw this.#damaged("its rows do not match its head");
		}
		await this.#target.finish(revision);
		return revision;
	}

	/** Removes the unfinished backup. */
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
