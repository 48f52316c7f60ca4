import type { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { StorageIdentity } from "@plinth/storage";

/** The identity of a storage or a backup, as stored in the file. */
export interface StoredIdentity extends StorageIdentity {
	/** When the file was created as a backup, in milliseconds since 1970. Absent if it is not a backup. */
	readonly backupMs?: number;
}

/** The table of schema version 2. Its one row is written when the file is created, and never changes. */
export const identityTable = `
	CREATE TABLE identity (
		id INTEGER PRIMARY KEY CHECK (id = 1),
		uid TEXT NOT NULL,
		incarnation TEXT NOT NULL,
		restores INTEGER NOT NULL,
		from_incarnation TEXT,
		from_version TEXT,
		restored_version TEXT,
		restored_ms INTEGER,
		backup_ms INTEGER,
		checksum INTEGER NOT NULL
	) STRICT;
`;

type Columns = readonly (string | number | null)[];

function columnsOf({ uid, incarnation, restores, restored, backupMs }: StoredIdentity): Columns {
	return [
		uid,
		incarnation,
		restores,
		restored?.fromIncarnation ?? null,
		restored?.fromVersion ?? null,
		restored?.version ?? null,
		restored?.atMs ?? null,
		backupMs ?? null,
	];
}

function checksumOf(columns: Columns): number {
	return crc32(JSON.stringify(columns));
}

/** Writes the identity to a database that has the table, and no identity yet. */
export function writeIdentity(database: DatabaseSync, identity: StoredIdentity): void {
	const columns = columnsOf(identity);
	database
		.prepare("INSERT INTO identity VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
		.run(...columns, checksumOf(columns));
}

/**
 * Reads the identity of a database that has the table.
 *
 * @returns `undefined` if it does not match its checksum.
 */
export function readIdentity(database: DatabaseSync): StoredIdentity | undefined {
	const row = database.prepare("SELECT * FROM identity WHERE id = 1").get();
	if (row === undefined) {
		return undefined;
	}
	const restoredMs = row.restored_ms;
	const identity: StoredIdentity = {
		uid: String(row.uid),
		incarnation: String(row.incarnation),
		restores: Number(row.restores),
		...(typeof restoredMs === "number" && {
			restored: {
				fromIncarnation: String(row.from_incarnation),
				fromVersion: String(row.from_version),
				version: String(row.restored_version),
				atMs: restoredMs,
			},
		}),
		...(typeof row.backup_ms === "number" && { backupMs: row.backup_ms }),
	};
	return row.checksum === checksumOf(columnsOf(identity)) ? identity : undefined;
}
