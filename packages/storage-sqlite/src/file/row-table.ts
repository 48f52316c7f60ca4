import type { DatabaseSync, StatementSync } from "node:sqlite";
import { addToDigest, type Head, headChecksum, rowChecksum } from "./checksum.ts";

/** What a transaction does to one row. */
export interface RowWrite {
	readonly key: string;
	readonly revision: number;
	/** Absent if the row goes. */
	readonly body?: Uint8Array | undefined;
}

/** The number of rows and their digest: what the head says but for the revision. */
export type Tally = Pick<Head, "resources" | "digest">;

/** The rows of a storage that is written to, and its head. Transactions are the caller's. */
export class RowTable {
	readonly #find: StatementSync;
	readonly #put: StatementSync;
	readonly #remove: StatementSync;
	readonly #setHead: StatementSync;

	constructor(database: DatabaseSync) {
		this.#find = database.prepare("SELECT checksum FROM resources WHERE key = ?");
		this.#put = database.prepare(
			`INSERT INTO resources VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
				SET revision = excluded.revision, body = excluded.body, checksum = excluded.checksum`,
		);
		this.#remove = database.prepare("DELETE FROM resources WHERE key = ?");
		this.#setHead = database.prepare(
			"UPDATE head SET revision = ?, resources = ?, digest = ?, checksum = ? WHERE id = 1",
		);
	}

	/** Writes rows, each of another key, and returns the tally with them. */
	write(rows: readonly RowWrite[], before: Tally): Tally {
		let { resources, digest } = before;
		for (const { key, revision, body } of rows) {
			const stored = this.#find.get(key)?.checksum;
			const went = typeof stored === "number" ? stored : undefined;
			let came: number | undefined;
			if (body !== undefined) {
				came = rowChecksum({ key, revision, body });
				this.#put.run(key, revision, body, came);
			} else if (went !== undefined) {
				this.#remove.run(key);
			}
			resources += Number(came !== undefined) - Number(went !== undefined);
			digest = addToDigest(digest, came ?? 0, went ?? 0);
		}
		return { resources, digest };
	}

	setHead(head: Head): void {
		this.#setHead.run(head.revision, head.resources, head.digest, headChecksum(head));
	}
}
