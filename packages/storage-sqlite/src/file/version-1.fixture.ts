import { DatabaseSync } from "node:sqlite";
import { toBinary } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { addToDigest, headChecksum, rowChecksum } from "./checksum.ts";

/** Makes a file as version 1 of the schema had it, with resources at the revisions 1, 2, 3… */
export function createVersion1(path: string, resources: readonly Resource[]): void {
	const database = new DatabaseSync(path);
	database.exec("PRAGMA journal_mode = WAL");
	database.exec("BEGIN");
	database.exec(`
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
	`);
	let digest = 0;
	const put = database.prepare("INSERT INTO resources VALUES (?, ?, ?, ?)");
	for (const [index, resource] of resources.entries()) {
		const key = nameKey(resource.id ?? { name: "" });
		const row = { key, revision: index + 1, body: toBinary(ResourceSchema, resource) };
		const checksum = rowChecksum(row);
		put.run(row.key, row.revision, row.body, checksum);
		digest = addToDigest(digest, checksum, 0);
	}
	const head = { revision: resources.length, resources: resources.length, digest };
	database
		.prepare("INSERT INTO head VALUES (1, ?, ?, ?, ?)")
		.run(head.revision, head.resources, head.digest, headChecksum(head));
	database.exec("PRAGMA application_id = 0x506c6e74");
	database.exec("PRAGMA user_version = 1");
	database.exec("COMMIT");
	database.close();
}
