// Start with many resources: time, memory, and how long the event loop was held up.
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { heapUsed, numberOption } from "@plinth/bench";
import { createSqliteBackend } from "../src/index.ts";
import { fill } from "./fill.ts";

const size = numberOption("resources", 200_000, 2_000);

const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const path = join(directory, "storage.db");
fill(path, size);
const fileBytes = (await stat(path)).size;

const before = { heap: await heapUsed(), resident: process.memoryUsage().rss };
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const startMs = performance.now();
const backend = await createSqliteBackend({ path });
const tookMs = performance.now() - startMs;
delay.disable();
const after = { heap: await heapUsed(), resident: process.memoryUsage().rss };
console.table({
	resources: size,
	"file MiB": Math.round(fileBytes / 2 ** 20),
	"start ms": Math.round(tookMs),
	"heap MiB": Math.round((after.heap - before.heap) / 2 ** 20),
	"resident MiB": Math.round((after.resident - before.resident) / 2 ** 20),
	"event loop p99 ms": (delay.percentile(99) / 1e6).toFixed(1),
	"event loop max ms": (delay.max / 1e6).toFixed(1),
});
await backend.close();
await rm(directory, { recursive: true });
