// Durable commits a second and their latency, by how many write at once, against one transaction per
// commit on the same disk in the same run.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import type { Load } from "@plinth/bench";
import { ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { compareWithGroupCommit, loadOfCommits, loadOfWriters } from "@plinth/storage/bench";
import { createIfMissing } from "../src/file/create-storage.ts";
import { StorageWriter } from "../src/file/storage-writer.ts";
import { createSqliteBackend } from "../src/index.ts";

async function inDirectory<T>(body: (path: string) => Promise<T>): Promise<T> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
	try {
		return await body(join(directory, "storage.db"));
	} finally {
		await rm(directory, { recursive: true });
	}
}

function grouped(writers: number): Promise<Load> {
	return inDirectory(async (path) => loadOfCommits(await createSqliteBackend({ path }), writers));
}

function oneByOne(writers: number): Promise<Load> {
	return inDirectory(async (path) => {
		createIfMissing(path, { uid: "bench", incarnation: "bench" });
		const storage = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
		let revision = 0;
		let last: Promise<void> = Promise.resolve();
		const measured = await loadOfWriters(writers, (resource) => {
			last = last.then(() => {
				const key = nameKey(resource.id ?? { name: "" });
				const body = toBinary(ResourceSchema, resource);
				revision += 1;
				storage.write(revision, [{ key, revision, body }]);
			});
			return last;
		});
		storage.close();
		return measured;
	});
}

await compareWithGroupCommit("Time per durable commit of all writers together", grouped, [
	"one transaction per commit",
	oneByOne,
]);
