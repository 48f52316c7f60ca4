import { DatabaseSync } from "node:sqlite";
import { addToDigest, type Head, headChecksum, rowChecksum } from "./checksum.ts";
import { type Page, PageBuilder } from "./page.ts";
import { StorageFileError } from "./storage-file-error.ts";

/**
 * Reads a whole storage, page by page, and checks all of it: each row by its checksum, the whole by
 * the head's count and digest, the index of keys against the table. Reads through a read-only
 * connection, which neither recovers nor checkpoints into the main file, so that a file that turns
 * out to be damaged is left as it is.
 *
 * @throws StorageFileError where anything contradicts.
 */
export class StorageReader {
	readonly #path: string;
	readonly #database: DatabaseSync;
	readonly head: Head;
	readonly #pages: Generator<Page, void, undefined>;

	constructor(path: string) {
		this.#path = path;
		this.#database = new DatabaseSync(path, { readOnly: true });
		try {
			this.head = this.#checked(() => this.#readHead());
		} catch (error) {
			this.close();
			throw error;
		}
		this.#pages = this.#readPages();
	}

	/** The next rows, or `undefined` where all were read and all is well. */
	nextPage(): Page | undefined {
		const { done, value } = this.#checked(() => this.#pages.next());
		return done ? undefined : value;
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
			throw this.#damaged("its head does not match its checksum");
		}
		return head;
	}

	*#readPages(): Generator<Page, void, undefined> {
		const { head } = this;
		let resources = 0;
		let digest = 0;
		let keys = 0;
		const builder = new PageBuilder();
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
				throw this.#damaged(`the row of ${String(key)} does not match its checksum`);
			}
			resources += 1;
			digest = addToDigest(digest, checksum, 0);
			keys = addToDigest(keys, rowChecksum({ key, revision: 0, body: nothing }), 0);
			const page = builder.add({ revision, body }) ? builder.take() : undefined;
			if (page !== undefined) {
				yield page;
			}
		}
		const lastPage = builder.take();
		if (lastPage !== undefined) {
			yield lastPage;
		}
		if (resources !== head.resources || digest !== head.digest) {
			throw this.#damaged(
				`it holds ${resources} resources that are not the ${head.resources} that its head vouches for`,
			);
		}
		this.#checkIndex(keys);
		this.#checkPages();
	}

	/** The index of keys holds the keys of the table, in order: what writes will rely on. */
	#checkIndex(expected: number): void {
		const rows = this.#database.prepare("SELECT key FROM resources ORDER BY key");
		rows.setReturnArrays(true);
		let keys = 0;
		let last: string | undefined;
		for (const row of rows.iterate()) {
			const [key] = columns(row);
			if (typeof key !== "string" || (last !== undefined && key === last)) {
				throw this.#damaged("its index of keys is out of order");
			}
			last = key;
			keys = addToDigest(keys, rowChecksum({ key, revision: 0, body: nothing }), 0);
		}
		if (keys !== expected) {
			throw this.#damaged("its index of keys does not match its rows");
		}
	}

	#checkPages(): void {
		const [first] = this.#database.prepare("PRAGMA quick_check(1)").all();
		const verdict = first?.quick_check;
		if (verdict !== "ok") {
			throw this.#damaged(`SQLite's check of its pages says: ${String(verdict)}`);
		}
	}

	/** Takes SQLite's own complaints for damage. */
	#checked<T>(read: () => T): T {
		try {
			return read();
		} catch (cause) {
			if (cause instanceof StorageFileError) {
				throw cause;
			}
			throw this.#damaged(cause instanceof Error ? cause.message : String(cause), cause);
		}
	}

	#damaged(why: string, cause?: unknown): StorageFileError {
		return new StorageFileError(
			this.#path,
			"damaged",
			`the file is damaged: ${why}. It has been left as it is: restore it from a backup`,
			{ cause },
		);
	}
}

const nothing = new Uint8Array();

/** A row as the array that `setReturnArrays` makes of it; the declarations know only objects. */
function columns(row: unknown): readonly unknown[] {
	return Array.isArray(row) ? row : [];
}
