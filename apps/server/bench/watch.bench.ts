/*
 * The cost of an event of a watch for the server, in microseconds of processor time per watcher: what writes cost with
 * watchers, beyond what they cost without. The watchers count envelopes and decode nothing. The alternative is the
 * resource service behind Connect's own adapter, or the server of another checkout, as in call.bench.ts.
 *
 * Then, the same for one set of 20 watches in one stream, next to 20 streams of one watch each, of the same server.
 *
 * After that, the growth of the server's resident memory per idle watch (`--idle=20000` watches).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ComparisonTable, format, numberOption, printTable, textOption } from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { artist } from "../testdata/music.ts";
import { headers } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";
import { WatcherGroup } from "./watcher-group.ts";

const against = textOption("against");
const writesPerRound = numberOption("writes", 2_000, 40);
const idleWatches = numberOption("idle", 20_000, 50);
const rounds = numberOption("rounds", 7, 1);
const watchers = (textOption("watchers") ?? "1,10,1000").split(",").map(Number);
/** Concurrent writers: more of them make events arrive together. */
const writers = numberOption("writers", 16, 4);
const names = 100;
const formats = [
	["gRPC", "application/grpc"],
	["Connect, JSON", "application/connect+json"],
] as const;

const here = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
const logFile = join(folder, "server.log");

const alternative =
	against === undefined
		? {
				name: "Connect's adapter",
				command: [process.execPath, join(here, "bench/bare-server.ts")],
			}
		: { name: against, command: plinthServer(resolve(against, "apps/server"), folder) };
const contenders = {
	plinth: plinthServer(here, folder),
	[alternative.name]: alternative.command,
};

try {
	await measureEvents();
	await measureSets();
	await measureIdle();
} finally {
	rmSync(folder, { recursive: true });
}
process.exit(0);

async function measureEvents(): Promise<void> {
	const table = new ComparisonTable(
		`processor time of the server per event and watcher; ${writers} writers`,
		"µs",
	);
	for (const [format, contentType] of formats) {
		for (const count of watchers) {
			const servers = await Promise.all(
				Object.values(contenders).map((command) => startMeasured(command, logFile)),
			);
			const rounds_: Record<string, () => Promise<number>> = {};
			for (const [index, name] of Object.keys(contenders).entries()) {
				const server = servers[index];
				if (server !== undefined) {
					rounds_[name] = () => costPerEvent(server, count, contentType);
				}
			}
			await table.measure(`${count} watchers, ${format}`, rounds_, { rounds, warmUpRounds: 1 });
			await Promise.all(servers.map((server) => server.stop()));
		}
	}
	table.print();
}

/** The watches of one set, next to as many streams. */
async function measureSets(): Promise<void> {
	const inSet = 20;
	const table = new ComparisonTable(
		`events per second of processor time of the server; ${writers} writers`,
		"",
	);
	for (const [format, contentType] of formats) {
		const server = await startMeasured(contenders.plinth, logFile);
		await table.measure(
			format,
			{
				[`one set of ${inSet} watches`]: async () =>
					1e6 / (await costPerEvent(server, 1, contentType, inSet)),
				[`${inSet} watches`]: async () => 1e6 / (await costPerEvent(server, inSet, contentType)),
			},
			{ rounds, warmUpRounds: 1 },
		);
		await server.stop();
	}
	table.print();
}

/** Microseconds per event and watcher. */
async function costPerEvent(
	server: MeasuredServer,
	count: number,
	contentType: string,
	watchesPerStream = 1,
): Promise<number> {
	const watches = count * watchesPerStream;
	const writes = Math.max(2 * writers, Math.ceil(writesPerRound / watches));
	const before = await costOfWrites(server, writes);
	const options = { count, contentType, headers, watchesPerStream };
	const group = await WatcherGroup.open(server.address, options);
	const during = await costOfWrites(server, writes, group);
	group.close();
	return (during - before) / writes / watches;
}

/** Microseconds of some writes, until all watchers have received all events. */
async function costOfWrites(
	server: MeasuredServer,
	writes: number,
	group?: WatcherGroup,
): Promise<number> {
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: server.address }));
	const start = server.cpuMicroseconds();
	const received = group?.receive(writes);
	let turn = 0;
	await Promise.all(
		Array.from({ length: writers }, async () => {
			while (turn < writes) {
				turn += 1;
				await client.write({ resource: artist(`r${turn % names}`) }, { headers });
			}
		}),
	);
	await received;
	return server.cpuMicroseconds() - start;
}

async function measureIdle(): Promise<void> {
	const rows = [];
	for (const [name, command] of Object.entries(contenders)) {
		const server = await startMeasured(command, logFile);
		// The first watches make the server load and compile what the others use.
		const first = { contentType: "application/grpc", headers };
		const some = await WatcherGroup.open(server.address, {
			count: Math.ceil(idleWatches / 20),
			...first,
		});
		const before = server.residentBytes();
		const all = await WatcherGroup.open(server.address, { count: idleWatches, ...first });
		const bytes = server.residentBytes() - before;
		rows.push({ server: name, "kB per idle watch": format(bytes / idleWatches / 1_000) });
		some.close();
		all.close();
		await server.stop();
	}
	printTable(`Resident memory of ${idleWatches} idle watches, gRPC`, rows);
}
