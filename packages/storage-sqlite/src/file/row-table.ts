import type { DatabaseSync, StatementSync } from "node:sqlite";
import { addToDigest, type Head, headChecksum, rowChecksum } from "./checksum.ts";

/** A write of one row in a transaction. */
export interface RowWrite {
	readonly key: string;
	readonly revision: number;
	/** Absent if the row is deleted. */
	readonly body?: Uint8Array | undefined;
}

/** The number of rows and their digest: the head without the revision. */
export type Tally = Pick<Head, "resources" | "digest">;

/** Writes the rows and the head of a storage. The caller manages transactions. */
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

	/** Writes rows, each with a different key, and returns the updated tally. */
	write(rows: readonly RowWrite[], before: Tally): Tally {
		let { resources, digest } = before;
		for (const { key, revision, body } of rows) {
			const stored = this.#find.get(key)?.checksum;
			const removed = typeof stored === "number" ? stored : undefined;
			let added: number | undefined;
			if (body !== undefined) {
				added = rowChecksum({ key, revision, body });
				this.#put.run(key, revision, body, added);
			} else if (removed !== undefined) {
				this.#remove.run(key);
			}
			resources += Number(added !== undefined) - Number(removed !== undefined);
			digest = addToDigest(digest, added ?? 0, removed ?? 0);
		}
		return { resources, digest };
	}

	setHead(head: Head): void {
		this.#setHead.run(head.revision, head.resources, head.digest, headChecksum(head));
	}
}
