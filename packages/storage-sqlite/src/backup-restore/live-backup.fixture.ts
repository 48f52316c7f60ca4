import fc from "fast-check";
import { expect } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { createIfMissing } from "../file/create-storage.ts";
import type { RowWrite } from "../file/row-table.ts";
import { StorageReader } from "../file/storage-reader.ts";
import { StorageWriter } from "../file/storage-writer.ts";
import { LiveBackup } from "./live-backup.ts";

const fresh = { uid: "a uid", incarnation: "an incarnation" };

// The last two sort differently by UTF-16 code units than by bytes.
const letters = ["a", "b", "z", "\0", "é", "\uffee", "\u{1f600}"];

const key = fc
	.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 4 })
	.map((chosen) => chosen.join(""));
const body = fc.option(fc.uint8Array({ maxLength: 20 }), { nil: undefined, freq: 3 });
const commit = fc.uniqueArray(fc.record({ key, body }), {
	selector: (row) => row.key,
	minLength: 1,
	maxLength: 8,
});

/** The content of a file, and its revision. */
function contentOf(path: string) {
	const reader = new StorageReader(path);
	try {
		const rows = [...reader.rows()].map((row): [string, string] => [
			row.key,
			`${row.revision} ${Buffer.from(row.body).toString("hex")}`,
		]);
		return { revision: reader.head.revision, rows: new Map(rows.sort()) };
	} finally {
		reader.close();
	}
}

/**
 * Takes backups of random content between random commits, and checks that each has the state as of the newest
 * commit.
 */
export async function checkLiveBackups(numRuns: number, seed: number): Promise<void> {
	await fc.assert(
		fc.asyncProperty(
			fc.array(commit, { minLength: 20, maxLength: 60 }),
			fc.array(fc.array(commit, { maxLength: 6 }), { minLength: 1, maxLength: 12 }),
			fc.integer({ min: 1, max: 12 }),
			async (before, meanwhile, sliceRows) => {
				await using directory = await testDirectory();
				const path = directory.file("storage.db");
				const to = directory.file("backup.db");
				createIfMissing(path, fresh);
				const writer = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
				let revision = 0;
				const write = (rows: readonly Omit<RowWrite, "revision">[]) => {
					revision += 1;
					const stamped = rows.map((row) => ({ ...row, revision }));
					writer.write(revision, stamped);
					return stamped;
				};
				before.forEach(write);
				const identity = { ...fresh, restores: 0, backupMs: 1 };
				const backup = new LiveBackup(path, writer, to, identity, sliceRows);
				let step = 0;
				do {
					for (const rows of meanwhile[step++ % meanwhile.length] ?? []) {
						backup.follow(write(rows));
					}
				} while (backup.step());
				expect(await backup.finish()).toBe(revision);
				writer.close();
				expect(contentOf(to)).toEqual(contentOf(path));
			},
		),
		{ numRuns, seed },
	);
}
