import { DatabaseSync } from "node:sqlite";
import { type Page, PageBuilder } from "../loading/page.ts";
import { StorageFileError } from "../storage-file-error.ts";
import { addToDigest, type Head, headChecksum, rowChecksum } from "./checksum.ts";
import { checkHeader, checkVersion } from "./file-header.ts";
import { readIdentity, type StoredIdentity } from "./identity.ts";
import { versionOf } from "./migrations.ts";
import { fileError } from "./sqlite-failure.ts";

/** A row whose checksum is correct. */
export interface StoredRow {
	readonly key: string;
	readonly revision: number;
	readonly body: Uint8Array;
}

/**
 * Reads a whole storage row by row and checks all of it: each row by its checksum, all rows by the count
 * and digest in the head, the index of keys against the table. It uses a read-only connection, which
 * neither recovers nor checkpoints into the main file, so that a damaged file is left unchanged.
 *
 * @throws StorageFileError if a check fails or the file can't be read.
 */
export class StorageReader {
	readonly #path: string;
	readonly #file: StorageFileError["file"];
	readonly #database: DatabaseSync;
	/** The version of the schema. */
	readonly version: number;
	readonly head: Head;
	/** Absent in files of schema version 1. */
	readonly identity: StoredIdentity | undefined;
	#pages: Generator<Page, void, undefined> | undefined;

	/** @param file - what the file is for. */
	constructor(path: string, file: StorageFileError["file"] = "storage") {
		this.#path = path;
		this.#file = file;
		try {
			checkHeader(path);
			this.#database = new DatabaseSync(path, { readOnly: true });
		} catch (error) {
			throw fileError(path, error, file);
		}
		try {
			// The header may be older than the write-ahead log.
			this.version = versionOf(this.#database);
			checkVersion(path, this.version);
			this.head = this.#readHead();
			this.identity = this.version < 2 ? undefined : this.#readIdentity();
		} catch (error) {
			this.close();
			throw fileError(path, error, file);
		}
	}

	/** The next rows, or `undefined` when all rows were read and all checks passed. */
	nextPage(): Page | undefined {
		this.#pages ??= pagesOf(this.rows());
		const { done, value } = this.#pages.next();
		return done ? undefined : value;
	}

	/** All rows. When the iteration has ended, the whole file was checked. */
	*rows(): Generator<StoredRow, void, undefined> {
		try {
			yield* this.#readRows();
		} catch (error) {
			throw fileError(this.#path, error, this.#file);
		}
	}

	close(): void {
		this.#database.close();
	}

	#readHead(): Head {
		const row = this.#database
			.prepare("SELECT revision, resources, digest, checksum FROM head WHERE id = 1")
			.get();
		const head = {
			revision: Number(row?.revision),
			resources: Number(row?.resources),
			digest: Number(row?.digest),
		};
		if (row?.checksum !== headChecksum(head)) {
			throw new Error("its head does not match its checksum");
		}
		return head;
	}

	#readIdentity(): StoredIdentity {
		const identity = readIdentity(this.#database);
		if (identity === undefined) {
			throw new Error("its identity does not match its checksum");
		}
		return identity;
	}

	*#readRows(): Generator<StoredRow, void, undefined> {
		const { head } = this;
		let resources = 0;
		let digest = 0;
		let keys = 0;
		// Read beside the table, so that it does not take further time when all rows have been loaded.
		const index = this.#indexKeys();
		const rows = this.#database.prepare(
			"SELECT key, revision, body, checksum FROM resources NOT INDEXED",
		);
		rows.setReturnArrays(true);
		for (const row of rows.iterate()) {
			const [key, revision, body, checksum] = columns(row);
			if (
				typeof key !== "string" ||
				typeof revision !== "number" ||
				!(body instanceof Uint8Array) ||
				typeof checksum !== "number" ||
				revision > head.revision ||
				rowChecksum({ key, revision, body }) !== checksum
			) {
				throw new Error(`the row of ${String(key)} does not match its checksum`);
			}
			resources += 1;
			digest = addToDigest(digest, checksum, 0);
			keys = addToDigest(keys, rowChecksum({ key, revision: 0, body: nothing }), 0);
			index.next();
			yield { key, revision, body };
		}
		if (resources !== head.resources || digest !== head.digest) {
			throw new Error(`it has ${resources} resources, but its head counts ${head.resources}`);
		}
		const { done, value } = index.next();
		if (!done || value !== keys) {
			throw new Error("its index of keys does not match its rows");
		}
		this.#checkPages();
	}

	/**
	 * Reads the index of keys, one for each call, and checks that they are in order, because writes rely on it.
	 *
	 * @returns The sum of their checksums.
	 */
	*#indexKeys(): Generator<undefined, number, undefined> {
		const rows = this.#database.prepare("SELECT key FROM resources ORDER BY key");
		rows.setReturnArrays(true);
		let keys = 0;
		let last: string | undefined;
		for (const row of rows.iterate()) {
			const [key] = columns(row);
			if (typeof key !== "string" || (last !== undefined && key === last)) {
				throw new Error("its index of keys is out of order");
			}
			last = key;
			keys = addToDigest(keys, rowChecksum({ key, revision: 0, body: nothing }), 0);
			yield;
		}
		return keys;
	}

	#checkPages(): void {
		const [first] = this.#database.prepare("PRAGMA quick_check(1)").all();
		const verdict = first?.quick_check;
		if (verdict !== "ok") {
			throw new Error(`the page check of SQLite reports: ${String(verdict)}`);
		}
	}
}

/** Checks the whole file, and returns the version of its schema. */
export function checkWhole(path: string, file: StorageFileError["file"] = "storage"): number {
	const reader = new StorageReader(path, file);
	try {
		for (const _row of reader.rows()) {
			// Checked as it is read.
		}
		return reader.version;
	} finally {
		reader.close();
	}
}

/** Refuses a backup as a storage: opened without a restore, it would issue old versions again. */
export function refuseBackup(path: string, identity: StoredIdentity | undefined): void {
	if (identity?.backupMs !== undefined) {
		const taken = new Date(identity.backupMs).toISOString();
		throw new StorageFileError(
			path,
			"backup",
			`the file is a backup, taken at ${taken}: restore it to a file of its own`,
		);
	}
}

function* pagesOf(rows: Iterable<StoredRow>): Generator<Page, void, undefined> {
	const builder = new PageBuilder();
	for (const row of rows) {
		const page = builder.add(row) ? builder.take() : undefined;
		if (page !== undefined) {
			yield page;
		}
	}
	const lastPage = builder.take();
	if (lastPage !== undefined) {
		yield lastPage;
	}
}

const nothing = new Uint8Array();

/** A row as an array, because of `setReturnArrays`; the type declarations only have objects. */
function columns(row: unknown): readonly unknown[] {
	return Array.isArray(row) ? row : [];
}
