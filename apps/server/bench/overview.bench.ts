/*
 * What viewers of the overview cost a server: processor time per second with none, one and twenty of them, each with the
 * shortest interval, of a server with nothing to do and of one with a steady load. The baseline is a server that never had a
 * viewer, in the same run: after a viewer has left, a server measures its event loop for another minute.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ComparisonTable, numberOption, unlessQuick } from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { artist } from "../testdata/music.ts";
import { headers } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";

const seconds = numberOption("seconds", 4, 0.2);
const resources = numberOption("resources", 10_000, 100);
const writesPerSecond = numberOption("writes", 200, 50);
const rounds = numberOption("rounds", 9, 1);

const here = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));

try {
	const start = () => startMeasured(plinthServer(here, folder), join(folder, "server.log"));
	const [viewed, unseen] = [await start(), await start()];
	await fill(viewed);
	await fill(unseen);
	const table = new ComparisonTable(
		`Processor time of a server with ${resources.toLocaleString("en-US")} resources, per second`,
		"ms",
		{ baseline: "no viewer" },
	);
	for (const [load, perSecond] of [
		["idle", 0],
		[`${writesPerSecond} writes per second`, writesPerSecond],
	] as const) {
		await table.measure(
			load,
			{
				"20 viewers": () => cpuPerSecond(viewed, 20, perSecond),
				"1 viewer": () => cpuPerSecond(viewed, 1, perSecond),
				"no viewer": () => cpuPerSecond(unseen, 0, perSecond),
			},
			{ rounds, warmUpRounds: unlessQuick(1, 0) },
		);
	}
	table.print();
	await viewed.stop();
	await unseen.stop();
} finally {
	rmSync(folder, { recursive: true });
}
process.exit(0);

function transportTo({ address }: MeasuredServer): Transport {
	return createGrpcTransport({ baseUrl: address });
}

async function fill(server: MeasuredServer): Promise<void> {
	const client = createClient(ResourceService, transportTo(server));
	let next = 0;
	const write = async () => {
		while (next < resources) {
			next += 1;
			await client.write({ resource: artist(`r${next}`) }, { headers });
		}
	};
	await Promise.all(Array.from({ length: 16 }, write));
}

/** Milliseconds per second, while viewers watch and writes arrive at a fixed rate. */
async function cpuPerSecond(
	server: MeasuredServer,
	viewers: number,
	perSecond: number,
): Promise<number> {
	const stop = new AbortController();
	const transport = transportTo(server);
	const open = Array.from({ length: viewers }, () => view(transport, stop.signal));
	await Promise.all(open.map(({ begun }) => begun));
	const client = createClient(ResourceService, transport);
	const startedMs = performance.now();
	const start = server.cpuMicroseconds();
	const total = perSecond * seconds;
	for (let count = 0; count < total; count += 1) {
		const dueMs = startedMs + (count / perSecond) * 1_000;
		await delay(Math.max(0, dueMs - performance.now()));
		await client.write({ resource: artist(`r${count % resources}`) }, { headers });
	}
	await delay(Math.max(0, startedMs + seconds * 1_000 - performance.now()));
	const used = (server.cpuMicroseconds() - start) / (performance.now() - startedMs);
	stop.abort();
	await Promise.all(open.map(({ ended }) => ended));
	return used;
}

/** Watches overviews until the signal aborts. `begun` resolves with the first one. */
function view(transport: Transport, signal: AbortSignal) {
	const begun = Promise.withResolvers<void>();
	const watch = async () => {
		const request = { interval: durationFromMs(1_000) };
		const options = { headers, signal };
		for await (const _ of createClient(ServerService, transport).watchOverview(request, options)) {
			begun.resolve();
		}
	};
	const ended = watch().catch((error: unknown) => {
		if (!signal.aborted) {
			begun.reject(error);
			throw error;
		}
	});
	return { begun: begun.promise, ended };
}
