import type { DatabaseSync } from "node:sqlite";

/** A row of events. */
export interface EventTableRow {
	readonly key: string;
	/** `undefined` if the row is removed. */
	readonly body: Uint8Array | undefined;
}

/** A write of rows of events. */
export interface EventWrite {
	/** The current time, in milliseconds since 1970: rows that have expired by then are deleted. */
	readonly nowMs: number;
	/** When the written rows expire, in milliseconds since 1970. */
	readonly expiresMs: number;
	readonly rows: readonly EventTableRow[];
}

/** Some rows of events, in the order of their keys. */
export interface EventPage {
	readonly rows: readonly EventTableRow[];
	/** Whether other rows follow. */
	readonly more: boolean;
}

/** The most expired rows that one write deletes. It is more than a write adds, so that none are left in the end. */
const deletedRows = 500;

/** The size of a page at which it ends. */
const pageRows = 256;
const pageBytes = 256 * 1024;

/**
 * Rows of events are in a table of their own, which the first write creates. It is not a step of `migrations`, since a
 * new version of the schema would keep an older Plinth from opening the file: that needs no events, ignores the table
 * and leaves it as it is. All rows and the head of the resources are the same with and without it.
 *
 * `expires` is in milliseconds since 1970, and before the body, so that reading it does not read a large body.
 */
const table = `
	CREATE TABLE IF NOT EXISTS events (
		key TEXT NOT NULL PRIMARY KEY,
		expires INTEGER NOT NULL,
		body BLOB NOT NULL
	) STRICT;
	CREATE INDEX IF NOT EXISTS events_by_expiry ON events (expires);
`;

/** Writes and removes rows, and deletes expired ones. Call it within a transaction. */
export function writeEvents(database: DatabaseSync, { nowMs, expiresMs, rows }: EventWrite): void {
	if (rows.some(({ body }) => body !== undefined)) {
		database.exec(table);
	} else if (!hasEvents(database)) {
		return;
	}
	database
		.prepare(
			`DELETE FROM events WHERE rowid IN
				(SELECT rowid FROM events WHERE expires <= ? ORDER BY expires LIMIT ${deletedRows})`,
		)
		.run(nowMs);
	const put = database.prepare(
		`INSERT INTO events (key, expires, body) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE
			SET expires = excluded.expires, body = excluded.body`,
	);
	const remove = database.prepare("DELETE FROM events WHERE key = ?");
	for (const { key, body } of rows) {
		if (body === undefined) {
			remove.run(key);
		} else {
			put.run(key, expiresMs, body);
		}
	}
}

/**
 * Reads the rows that have not expired, page by page.
 *
 * @param after The last key of the page before; `undefined` for the first page.
 */
export function readEvents(
	database: DatabaseSync,
	nowMs: number,
	after: string | undefined,
): EventPage {
	const rows: EventTableRow[] = [];
	if (!hasEvents(database)) {
		return { rows, more: false };
	}
	const further = after === undefined ? "" : "AND key > ?";
	// The plus keeps SQLite from reading by expiry, and sorting.
	const select = database.prepare(
		`SELECT key, body FROM events WHERE +expires > ? ${further} ORDER BY key`,
	);
	let bytes = 0;
	for (const { key, body } of select.iterate(nowMs, ...(after === undefined ? [] : [after]))) {
		if (typeof key === "string" && body instanceof Uint8Array) {
			rows.push({ key, body });
			bytes += body.byteLength;
		}
		if (rows.length === pageRows || bytes >= pageBytes) {
			return { rows, more: true };
		}
	}
	return { rows, more: false };
}

function hasEvents(database: DatabaseSync): boolean {
	const found = database.prepare(
		"SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'events'",
	);
	return found.get() !== undefined;
}
