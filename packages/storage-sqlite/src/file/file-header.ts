import { closeSync, openSync, readSync } from "node:fs";
import { StorageFileError } from "../storage-file-error.ts";
import { schemaVersion } from "./migrations.ts";
import { applicationId } from "./schema.ts";

/**
 * Checks by its first bytes that a file is a storage that this code can read. It does not use SQLite, which
 * may write to a file when opening it. The offsets are those of SQLite's file format.
 *
 * @throws StorageFileError; a system error if it can't be read.
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
			"the file is not a SQLite database, or its beginning is damaged; it has been left as it is",
		);
	}
	if (header.readUInt32BE(68) !== applicationId) {
		throw new StorageFileError(
			path,
			"foreign",
			"the file is a SQLite database of another application; it has been left as it is",
		);
	}
	checkVersion(path, header.readUInt32BE(60));
}

/**
 * Checks that this code knows a version of the schema.
 *
 * @throws StorageFileError
 */
export function checkVersion(path: string, version: number): void {
	if (version < 1 || version > schemaVersion) {
		throw new StorageFileError(
			path,
			version > schemaVersion ? "newer" : "damaged",
			`the file has schema version ${version}, this Plinth reads versions up to ${schemaVersion}; it has been left as it is`,
		);
	}
}
