import { toBinary } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { artist } from "@plinth/storage/testing";
import { createIfMissing } from "./create-storage.ts";
import type { RowWrite } from "./row-table.ts";
import { StorageReader } from "./storage-reader.ts";
import { StorageWriter } from "./storage-writer.ts";

/** The artists of a large storage; all but every 20th are deleted. */
const manyArtists = Array.from({ length: 3_000 }, (_, at) => `artist-${at}`);
/** What is left. */
export const keptArtists = manyArtists.filter((_, at) => at % 20 === 0);

function row(name: string, revision: number, isKept: boolean): RowWrite {
	const resource = artist(name, "x".repeat(1_500));
	const key = nameKey(resource.id ?? { name });
	return isKept ? { key, revision, body: toBinary(ResourceSchema, resource) } : { key, revision };
}

/** Makes a storage of 3,000 resources: 5 MiB. */
export function writeMany(path: string): void {
	createIfMissing(path, { uid: "test", incarnation: "test" });
	const writer = openAgain(path);
	writer.write(
		1,
		manyArtists.map((name) => row(name, 1, true)),
	);
	writer.close();
}

/** Deletes all but every 20th. */
export function deleteMost(writer: StorageWriter): void {
	const kept = new Set(keptArtists);
	writer.write(
		2,
		manyArtists.filter((name) => !kept.has(name)).map((name) => row(name, 2, false)),
	);
}

/** Opens a storage for writing. */
export function openAgain(path: string): StorageWriter {
	const reader = new StorageReader(path);
	reader.close();
	return new StorageWriter(path, reader.head);
}
