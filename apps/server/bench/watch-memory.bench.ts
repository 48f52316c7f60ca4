/*
 * The resident memory of the product per idle watch. All watches are of one type and namespace, which has 16 resources,
 * and have received the snapshot. The figures are read after a garbage collection.
 *
 *   pnpm bench watch-memory
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { format, numberOption, printTable, type Row, unlessQuick } from "@plinth/bench";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import { headers, storeContent } from "./harness/content.ts";
import { buildGoPrograms } from "./harness/go-programs.ts";
import { startClient } from "./harness/load-client.ts";
import { startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";
import { commandTo } from "./harness/workloads.ts";

const watches = numberOption("watches", 20_000, 200);
const steps = 4;
/** Below the limit of streams on one connection. */
const watchesPerConnection = 1_000;
/** Buffers and timers of what was done before are gone after this time. */
const idleMs = unlessQuick(3_000, 100);

const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const client = startClient("gRPC", buildGoPrograms());
const server = await startMeasured(
	plinthServer(join(import.meta.dirname, ".."), folder, "testdata/modules/heap/module.ts"),
	join(folder, "plinth.log"),
);
const jukebox = createClient(JukeboxService, createGrpcTransport({ baseUrl: server.address }));
const rows: Row[] = [];
try {
	await storeContent(server.address);
	const connections = Math.ceil(watches / watchesPerConnection);
	const load = { callers: 1, connections, count: 1, watches: watches / steps };
	// The first watches of a process load and compile code. They are few: the process keeps the pages of more.
	const first = { ...load, watches: Math.ceil(watches / 100) };
	await client.run(commandTo(server, { ...first, operation: "openWatches" }));
	await client.run(commandTo(server, { ...first, operation: "closeWatches" }));
	const before = await memory();
	addRow(0, before, before);
	for (let step = 1; step <= steps; step++) {
		await client.run(commandTo(server, { ...load, operation: "openWatches" }));
		addRow(step * load.watches, await memory(), before);
	}
	printTable(`Memory of the server with idle watches on ${connections} connections`, rows);
} finally {
	client.stop();
	await server.stop();
}
process.exit(0);

interface Memory {
	readonly residentBytes: number;
	readonly heapBytes: number;
}

/** After a garbage collection, which the jukebox of this module makes. */
async function memory(): Promise<Memory> {
	await setTimeout(idleMs);
	const { song } = await jukebox.play({}, { headers });
	return { residentBytes: server.residentBytes(), heapBytes: Number(song) };
}

function addRow(open: number, now: Memory, before: Memory): void {
	const perWatch = (kind: keyof Memory) =>
		open === 0 ? "" : format((now[kind] - before[kind]) / open / 1_024);
	rows.push({
		watches: open,
		"resident MiB": format(now.residentBytes / 1_024 ** 2),
		"heap MiB": format(now.heapBytes / 1_024 ** 2),
		"resident KiB per watch": perWatch("residentBytes"),
		"heap KiB per watch": perWatch("heapBytes"),
	});
}
