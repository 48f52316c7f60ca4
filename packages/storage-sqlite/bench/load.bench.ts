// Start with many resources: time, memory, and how long the event loop was held up.
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { ResourceSchema } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { createSqliteBackend } from "../src/index.ts";
import { createIfMissing } from "../src/schema.ts";
import { type RowWrite, StorageWriter } from "../src/writer.ts";

const size = Number(process.argv[2] ?? 200_000);

function row(index: number): RowWrite {
	const resource = create(ResourceSchema, {
		id: {
			name: `artist-${index}`,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: `team-${index % 1000}` },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
	const body = toBinary(ResourceSchema, resource);
	return { key: nameKey(resource.id ?? { name: "" }), revision: index + 1, body };
}

const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const path = join(directory, "storage.db");
createIfMissing(path);
const writer = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
for (let first = 0; first < size; first += 10_000) {
	const rows = Array.from({ length: Math.min(10_000, size - first) }, (_, i) => row(first + i));
	writer.write(first + rows.length, rows);
}
writer.close();
const fileBytes = (await stat(path)).size;

globalThis.gc?.();
const before = process.memoryUsage();
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const startMs = performance.now();
const backend = await createSqliteBackend({ path });
const tookMs = performance.now() - startMs;
delay.disable();
globalThis.gc?.();
const after = process.memoryUsage();
console.table({
	resources: size,
	"file MiB": Math.round(fileBytes / 2 ** 20),
	"start ms": Math.round(tookMs),
	"heap MiB": Math.round((after.heapUsed - before.heapUsed) / 2 ** 20),
	"resident MiB": Math.round((after.rss - before.rss) / 2 ** 20),
	"event loop p99 ms": (delay.percentile(99) / 1e6).toFixed(1),
	"event loop max ms": (delay.max / 1e6).toFixed(1),
});
await backend.close();
await rm(directory, { recursive: true });
