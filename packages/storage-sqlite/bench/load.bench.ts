// Start with many resources: time, memory, and how long the event loop was held up.
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createSqliteBackend } from "../src/index.ts";
import { fill } from "./fill.ts";

const size = Number(process.argv[2] ?? 200_000);

const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const path = join(directory, "storage.db");
fill(path, size);
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
