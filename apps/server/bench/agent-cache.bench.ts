/*
 * What a cache of an agent costs and saves: reads, and the events of watches, from a server directly and from the cache of an agent
 * in front of the same server, in the same run. The server and the agent are processes of their own, on the same processor
 * if there is taskset. The client is this process.
 *
 *   pnpm bench agent-cache
 *   pnpm bench agent-cache --seconds=2 --rounds=9 --watchers=1,100,1000
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import {
	ComparisonTable,
	interleaveSteps,
	numberOption,
	quantile,
	runCallers,
	textOption,
} from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { freePort } from "@plinth/test-support/ports";
import { Artist, artist } from "../testdata/music.ts";
import { headers } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer, token } from "./harness/plinth-server.ts";
import { WatcherGroup } from "./watcher-group.ts";

const rounds = numberOption("rounds", 7, 1);
/** How long a round of reads takes. */
const seconds = numberOption("seconds", 1, 0.05);
const writes = numberOption("writes", 200, 40);
const watchers = (textOption("watchers") ?? "1,100,1000").split(",").map(Number);
const manyCallers = 64;
const writers = 16;
const names = 100;

type Resources = Client<typeof ResourceService>;

/** A way to read: where watches and reads go, and the processes that work for them. */
interface Way {
	readonly address: string;
	readonly resources: Resources;
	readonly processes: readonly MeasuredServer[];
}

const app = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const port = await freePort();
const credential = fileWith("credential", "the-credential-of-the-agents");
const server = await startServer();
const agent = await startAgent();
const direct = wayTo(server, [server]);
const ways = { direct, cache: wayTo(agent, [server, agent]) } as const;

await Promise.all(
	Array.from({ length: names }, (_, index) =>
		direct.resources.write({ resource: artist(`r${index}`) }, { headers }),
	),
);
await whenUsed(agent.address);
await measureReads();
await measureWatches();
process.exit(0);

function fileWith(name: string, content: string): string {
	const file = join(folder, name);
	writeFileSync(file, content);
	return file;
}

function startServer(): Promise<MeasuredServer> {
	const forAgents = [
		"--agents-listen",
		`127.0.0.1:${port}`,
		"--agents-credential-file",
		credential,
	];
	return startMeasured([...plinthServer(app, folder), ...forAgents], join(folder, "server.log"));
}

function startAgent(): Promise<MeasuredServer> {
	const command = [process.execPath, join(app, "src/main.ts"), "agent", "--listen", "127.0.0.1:0"];
	const servers = ["--servers", `127.0.0.1:${port}`, "--servers-credential-file", credential];
	const cache = ["--cache", Artist.key, "--cache-token-file", fileWith("token", token)];
	return startMeasured([...command, ...servers, ...cache], join(folder, "agent.log"));
}

function wayTo({ address }: MeasuredServer, processes: readonly MeasuredServer[]): Way {
	const resources = createClient(ResourceService, createPlinthTransport({ baseUrl: address }));
	return { address, resources, processes };
}

/** Waits until the cache is used, and the rights of the token are known. */
async function whenUsed(address: string): Promise<void> {
	const { resources } = ways.cache;
	let isCached = false;
	while (!isCached) {
		await setTimeout(50);
		const id = idOf(Artist, "r0");
		await resources.read(
			{ id },
			{
				headers,
				onHeader: (fields) => {
					isCached = fields.has("x-plinth-cache-version");
				},
			},
		);
	}
	process.stdout.write(`${await (await fetch(`${address}/readyz`)).text()}\n`);
}

function cpuMicroseconds(processes: readonly MeasuredServer[]): number {
	return processes.reduce((sum, each) => sum + each.cpuMicroseconds(), 0);
}

async function measureReads(): Promise<void> {
	const stepsOf =
		({ resources, processes }: Way) =>
		() => {
			let [cost, ofServer] = [Number.NaN, Number.NaN];
			const read = (caller: number) =>
				resources.read({ id: idOf(Artist, `r${caller % names}`) }, { headers });
			return {
				latency: async () => {
					const { latenciesMs } = await runCallers(1, seconds, read);
					return 1_000 * quantile(latenciesMs, 0.5);
				},
				duration: async () => {
					const before = cpuMicroseconds(processes);
					const serverBefore = server.cpuMicroseconds();
					const load = await runCallers(manyCallers, seconds, read);
					cost = (cpuMicroseconds(processes) - before) / load.latenciesMs.length;
					ofServer = (server.cpuMicroseconds() - serverBefore) / load.latenciesMs.length;
					return 1e6 / load.perSecond;
				},
				cost: () => cost,
				ofServer: () => ofServer,
			};
		};
	const figures = await interleaveSteps(
		{ cache: stepsOf(ways.cache), direct: stepsOf(ways.direct) },
		{ rounds, warmUpRounds: 1 },
	);
	const table = new ComparisonTable("Read", "µs", { baseline: "direct" });
	table.add("median latency with 1 caller", figures.latency ?? {});
	table.add(`time per call with ${manyCallers} callers`, figures.duration ?? {});
	table.add("processor time per call", figures.cost ?? {});
	table.add("of that, of the server", figures.ofServer ?? {});
	table.print();
}

async function measureWatches(): Promise<void> {
	const table = new ComparisonTable(
		`Writes by ${writers} writers, until all watchers have the event, per write`,
		"µs",
		{ baseline: "direct" },
	);
	for (const count of watchers) {
		const stepsOf = (way: Way) => () => {
			let found = { time: Number.NaN, cost: Number.NaN, ofServer: Number.NaN };
			return {
				time: async () => {
					found = await costsOfEvents(way, count);
					return found.time;
				},
				cost: () => found.cost,
				ofServer: () => found.ofServer,
			};
		};
		const figures = await interleaveSteps(
			{ cache: stepsOf(ways.cache), direct: stepsOf(ways.direct) },
			{ rounds, warmUpRounds: 1 },
		);
		table.add(`${count} watchers: time`, figures.time ?? {});
		table.add(`${count} watchers: processor time`, figures.cost ?? {});
		table.add(`${count} watchers: of that, of the server`, figures.ofServer ?? {});
	}
	table.print();
}

/** Microseconds per write, until all watchers have its event. */
async function costsOfEvents({ address, processes }: Way, count: number) {
	const contentType = "application/grpc+proto";
	const group = await WatcherGroup.open(address, { count, contentType, headers });
	const { time, cost, ofServer } = await costsOfWrites(processes, group);
	group.close();
	return { time: time / writes, cost: cost / writes, ofServer: ofServer / writes };
}

/** Microseconds of some writes, until all watchers have received all events. */
async function costsOfWrites(processes: readonly MeasuredServer[], group: WatcherGroup) {
	const start = { cost: cpuMicroseconds(processes), ofServer: server.cpuMicroseconds() };
	const startMs = performance.now();
	const received = group.receive(writes);
	let turn = 0;
	await Promise.all(
		Array.from({ length: writers }, async () => {
			while (turn < writes) {
				turn += 1;
				const resource = artist(`r${turn % names}`, `jazz ${turn}`);
				await direct.resources.write({ resource }, { headers });
			}
		}),
	);
	await received;
	return {
		time: 1_000 * (performance.now() - startMs),
		cost: cpuMicroseconds(processes) - start.cost,
		ofServer: server.cpuMicroseconds() - start.ofServer,
	};
}
