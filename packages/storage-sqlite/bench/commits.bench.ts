// Durable commits a second and their latency, by how many write at once, against one transaction per
// commit on the same disk in the same run.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
	ComparisonTable,
	interleave,
	type Load,
	latencyCells,
	numberOption,
	runCallers,
	unlessQuick,
} from "@plinth/bench";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { createIfMissing } from "../src/file/create-storage.ts";
import { StorageWriter } from "../src/file/storage-writer.ts";
import { createSqliteBackend } from "../src/index.ts";

const seconds = numberOption("seconds", 1, 0.1);

function artist(name: string): Resource {
	return create(ResourceSchema, {
		id: {
			name,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: "default" },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
}

async function inDirectory<T>(body: (path: string) => Promise<T>): Promise<T> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
	try {
		return await body(join(directory, "storage.db"));
	} finally {
		await rm(directory, { recursive: true });
	}
}

/** Each writer creates a hundred resources, and then replaces them in turn. */
const names = 100;

async function grouped(writers: number): Promise<Load> {
	return inDirectory(async (path) => {
		const backend = await createSqliteBackend({ path });
		const versions = new Map<string, string>();
		const measured = await runCallers(writers, seconds, async (writer, step) => {
			const name = `artist-${writer}-${step % names}`;
			const resource = artist(name);
			const expectedVersion = versions.get(name) ?? "";
			const { version } = await backend.commit([{ op: "put", resource, expectedVersion }]);
			versions.set(name, version);
		});
		await backend.close();
		return measured;
	});
}

async function oneByOne(writers: number): Promise<Load> {
	return inDirectory(async (path) => {
		createIfMissing(path, { uid: "bench", incarnation: "bench" });
		const storage = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
		let revision = 0;
		let last: Promise<void> = Promise.resolve();
		const measured = await runCallers(writers, seconds, (writer, step) => {
			last = last.then(() => {
				const resource = artist(`artist-${writer}-${step % names}`);
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

const table = new ComparisonTable("Time per durable commit of all writers together", "µs");
for (const writers of [1, 16, 64, 256]) {
	let last: Load | undefined;
	const figures = await interleave(
		{
			"group commit": async () => {
				last = await grouped(writers);
				return 1e6 / last.perSecond;
			},
			"one transaction per commit": async () => 1e6 / (await oneByOne(writers)).perSecond,
		},
		{ rounds: unlessQuick(5, 1), warmUpRounds: 0 },
	);
	table.add(`${writers} writers`, figures, latencyCells(last?.latenciesMs ?? []));
}
table.print();
