import { statSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";

/**
 * Lets a file shrink later, page by page (`auto_vacuum = INCREMENTAL`): SQLite then keeps track of who refers to a page,
 * so that pages can be moved. Call it before the first table is created; later it has no effect.
 */
export function allowShrinking(database: DatabaseSync): void {
	database.exec("PRAGMA auto_vacuum = INCREMENTAL");
}

/** The free pages that a file keeps for new resources: a tenth of it, and at least 1 MiB. */
const keptShare = 0.1;
const keptPages = 256;

/**
 * The free pages of a file, which deleted resources leave, and which new ones use. Those that exceed a tenth of the
 * file are given back to the file system in steps: each is a transaction that moves used pages from the end of the file
 * to free ones, and cuts the end off. A crash leaves all of a step or nothing, and a step changes no resource.
 *
 * A file that was created without `allowShrinking` keeps all of its pages.
 */
export class FreeSpace {
	readonly #database: DatabaseSync;
	readonly #pages: StatementSync;
	readonly #free: StatementSync;
	readonly #canShrink: boolean;

	constructor(database: DatabaseSync) {
		this.#database = database;
		this.#pages = database.prepare("PRAGMA page_count");
		this.#free = database.prepare("PRAGMA freelist_count");
		// 2 is INCREMENTAL.
		this.#canShrink = database.prepare("PRAGMA auto_vacuum").get()?.auto_vacuum === 2;
	}

	/** How many free pages exceed what the file keeps. */
	get excess(): number {
		if (!this.#canShrink) {
			return 0;
		}
		const pages = Number(this.#pages.get()?.page_count);
		const free = Number(this.#free.get()?.freelist_count);
		return Math.max(0, free - Math.max(keptPages, Math.floor(pages * keptShare)));
	}

	/**
	 * Gives pages back in one transaction, at most so many. The file gets smaller when the write-ahead log is moved into
	 * it: with one of the next commits, or by `checkpoint`.
	 *
	 * @returns How many.
	 */
	giveBack(most: number): number {
		const pages = Math.min(most, this.excess);
		if (pages > 0) {
			// Unlike a prepared statement, which returns after each page, this runs to its end, and is one transaction.
			this.#database.exec(`PRAGMA incremental_vacuum(${pages})`);
		}
		return pages;
	}

	/** Whether the main file has an end that was given back, and that the next checkpoint cuts off. */
	get hasTail(): boolean {
		const file = this.#database.location();
		const { page_size } = this.#database.prepare("PRAGMA page_size").get() ?? {};
		const { page_count } = this.#pages.get() ?? {};
		return file !== null && statSync(file).size > Number(page_count) * Number(page_size);
	}

	/** Moves the write-ahead log into the main file, and cuts off the end that was given back. */
	checkpoint(): void {
		this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
	}
}
