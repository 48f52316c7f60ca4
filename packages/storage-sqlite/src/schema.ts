import { closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { headChecksum } from "./checksum.ts";
import { StorageFileError } from "./storage-file-error.ts";

/** Tells a file of Plinth from every other SQLite database: "Plnt" in ASCII. */
const applicationId = 0x506c6e74;

/** The schema that this code reads and writes; it grows by one with each migration. */
export const schemaVersion = 1;

/**
 * `resources` has a row for each resource: its key (family, tenancy, name), the revision of its
 * commit, and the message without its version, serialized. `head` has the one row that is written
 * with every transaction: the newest revision, which must survive even if that was a deletion; how
 * many resources there are; and the sum of their checksums, by which a lost or resurrected row shows.
 */
const schema = `
	CREATE TABLE resources (
		key TEXT NOT NULL PRIMARY KEY,
		revision INTEGER NOT NULL,
		body BLOB NOT NULL,
		checksum INTEGER NOT NULL
	) STRICT;
	CREATE TABLE head (
		id INTEGER PRIMARY KEY CHECK (id = 1),
		revision INTEGER NOT NULL,
		resources INTEGER NOT NULL,
		digest INTEGER NOT NULL,
		checksum INTEGER NOT NULL
	) STRICT;
`;

/**
 * Makes an empty storage where there is no file yet. It appears under its name only when it is
 * whole and on disk, so that a kill at any instant leaves none or a good one.
 */
export function createIfMissing(path: string): void {
	if (existsSync(path)) {
		return;
	}
	const unfinished = `${path}.new`;
	for (const leftover of [unfinished, `${unfinished}-journal`]) {
		rmSync(leftover, { force: true });
	}
	const database = new DatabaseSync(unfinished);
	try {
		database.exec("PRAGMA synchronous = FULL");
		database.exec("BEGIN");
		database.exec(schema);
		database
			.prepare("INSERT INTO head VALUES (1, 0, 0, 0, ?)")
			.run(headChecksum({ revision: 0, resources: 0, digest: 0 }));
		database.exec(`PRAGMA application_id = ${applicationId}`);
		database.exec(`PRAGMA user_version = ${schemaVersion}`);
		database.exec("COMMIT");
	} finally {
		database.close();
	}
	renameSync(unfinished, path);
	syncDirectory(dirname(path));
}

function syncDirectory(path: string): void {
	const descriptor = openSync(path, "r");
	try {
		fsyncSync(descriptor);
	} finally {
		closeSync(descriptor);
	}
}

/**
 * Checks by its first bytes that a file is a storage that this code can read, without letting SQLite
 * near it: opening alone may write. The offsets are those of SQLite's file format.
 *
 * @throws StorageFileError
 */
export function checkHeader(path: string): void {
	const header = Buffer.alloc(100);
	const descriptor = openSync(path, "r");
	let length: number;
	try {
		length = readSync(descriptor, header, 0, header.length, 0);
	} finally {
		closeSync(descriptor);
	}
	if (length < header.length || header.toString("latin1", 0, 16) !== "SQLite format 3\0") {
		throw new StorageFileError(
			path,
			"foreign",
			"the file is no SQLite database, or its beginning is damaged; it has been left as it is",
		);
	}
	if (header.readUInt32BE(68) !== applicationId) {
		throw new StorageFileError(
			path,
			"foreign",
			"the file is a SQLite database of another application; it has been left as it is",
		);
	}
	const version = header.readUInt32BE(60);
	if (version !== schemaVersion) {
		throw new StorageFileError(
			path,
			version > schemaVersion ? "newer" : "damaged",
			`the file has schema version ${version}, this Plinth reads version ${schemaVersion}; it has been left as it is`,
		);
	}
}
