import type { DatabaseSync } from "node:sqlite";
import { headChecksum } from "./checksum.ts";
import { identityTable, type StoredIdentity, writeIdentity } from "./identity.ts";
import { schemaVersion } from "./migrations.ts";

/** The SQLite application ID of Plinth: "Plnt" in ASCII. */
export const applicationId = 0x506c6e74;

/**
 * `resources` has a row for each resource: its key (family, tenancy, name), the revision of its commit, and
 * the serialized message without its version. `head` has one row that is written with every transaction:
 * the newest revision, which must survive even if that was a deletion; the number of resources; and the sum
 * of their checksums, which reveals lost or resurrected rows. `identity` identifies the storage.
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
	${identityTable}
`;

/** Creates the schema of an empty storage. Call it within a transaction. */
export function createSchema(database: DatabaseSync, identity: StoredIdentity): void {
	database.exec(schema);
	database
		.prepare("INSERT INTO head VALUES (1, 0, 0, 0, ?)")
		.run(headChecksum({ revision: 0, resources: 0, digest: 0 }));
	writeIdentity(database, identity);
	database.exec(`PRAGMA application_id = ${applicationId}`);
	database.exec(`PRAGMA user_version = ${schemaVersion}`);
}
