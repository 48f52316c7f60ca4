/*
 * The cost of an agent: the same calls to a server, directly and through an agent in front of it, in the same run. The server
 * and the agent are processes of their own, on the same processor if there is taskset. The client is this process.
 *
 *   pnpm bench agent
 *   pnpm bench agent --seconds=2 --rounds=9 --watches=10000
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import {
	ComparisonTable,
	format,
	interleaveSteps,
	numberOption,
	printTable,
	quantile,
	runCallers,
	unlessQuick,
} from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, resourceOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../testdata/music.ts";
import { headers, tenancyIn } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";
import { WatcherGroup } from "./watcher-group.ts";

const rounds = numberOption("rounds", 7, 1);
/** How long a round of one operation takes. */
const seconds = numberOption("seconds", 1, 0.05);
const watches = numberOption("watches", 4_000, 50);
const manyCallers = 64;
const listed = 100;
/** Buffers and timers of what was done before are gone after this time. */
const idleMs = unlessQuick(3_000, 100);

type Resources = Client<typeof ResourceService>;

const namespace = "hundred";
const type = typeOf(Artist.type);

/** A caller has a resource of its own, so that writes don't conflict. */
const idOfCaller = (caller: number) => idOf(Artist, `r${caller}`, tenancyIn(namespace));

const operations: Readonly<
	Record<string, (client: Resources, caller: number, step: number) => Promise<unknown>>
> = {
	Read: (client, caller) => client.read({ id: idOfCaller(caller) }, { headers }),
	Write: (client, caller, step) => client.write({ resource: artistOf(caller, step) }, { headers }),
	"List of 100": (client) => client.list({ type, tenancy: tenancyIn(namespace) }, { headers }),
};

function artistOf(caller: number, step: number) {
	const data = create(ArtistSchema, { genre: `jazz ${step}` });
	return resourceOf(Artist, { id: idOfCaller(caller), data });
}

const app = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const server = await startServer();
const agent = await startAgentBefore(server);
const ways = { direct: clientTo(server), agent: clientTo(agent) } as const;
const latencies = new ComparisonTable("Median latency with 1 caller", "ms", { baseline: "direct" });
const durations = new ComparisonTable(`Time per call with ${manyCallers} callers`, "µs", {
	baseline: "direct",
});
const costs = new ComparisonTable(
	`Processor time per call with ${manyCallers} callers: of the agent, and of the server without one`,
	"µs",
	{ baseline: "server" },
);

try {
	await storeContent(ways.direct);
	for (const name of Object.keys(operations)) {
		await compare(name);
	}
	latencies.print();
	durations.print();
	costs.print();
	await agent.stop();
	await server.stop();
	await measureWatches();
} finally {
	rmSync(folder, { recursive: true, force: true });
}
process.exit(0);

function startServer(): Promise<MeasuredServer> {
	return startMeasured(plinthServer(app, folder), join(folder, "server.log"));
}

function startAgentBefore({ address }: MeasuredServer): Promise<MeasuredServer> {
	const command = [process.execPath, join(app, "src/main.ts"), "agent"];
	return startMeasured(
		[...command, "--listen", "127.0.0.1:0", "--servers", new URL(address).host],
		join(folder, "agent.log"),
	);
}

function clientTo({ address }: MeasuredServer): Resources {
	return createClient(ResourceService, createPlinthTransport({ baseUrl: address }));
}

async function storeContent(client: Resources): Promise<void> {
	const id = idOf(Namespace, namespace);
	await client.write({ resource: resourceOf(Namespace, { id }) }, { headers });
	for (let index = 0; index < listed; index++) {
		await client.write({ resource: artistOf(index, 0) }, { headers });
	}
}

/** Measures one operation, in both ways. */
async function compare(name: string): Promise<void> {
	const call = operations[name];
	if (call === undefined) {
		return;
	}
	const stepsOf = (client: Resources, measured: MeasuredServer) => () => {
		let cost = Number.NaN;
		return {
			latency: async () => {
				const load = await runCallers(1, seconds, (...args) => call(client, ...args));
				return quantile(load.latenciesMs, 0.5);
			},
			duration: async () => {
				const before = measured.cpuMicroseconds();
				const load = await runCallers(manyCallers, seconds, (...args) => call(client, ...args));
				cost = (measured.cpuMicroseconds() - before) / load.latenciesMs.length;
				return 1e6 / load.perSecond;
			},
			cost: () => cost,
		};
	};
	const figures = await interleaveSteps(
		{ agent: stepsOf(ways.agent, agent), direct: stepsOf(ways.direct, server) },
		{ rounds, warmUpRounds: 1 },
	);
	latencies.add(name, figures.latency ?? {});
	durations.add(name, figures.duration ?? {});
	const { agent: ofAgent = [], direct: ofServer = [] } = figures.cost ?? {};
	costs.add(name, { agent: ofAgent, server: ofServer });
}

/** The resident memory that idle watches need: of the agent that forwards them, and of the server that is called directly. */
async function measureWatches(): Promise<void> {
	// A process that has done other work keeps pages, which watches would use.
	const newServer = await startServer();
	const ofServer = await residentPerWatch(newServer);
	const ofAgent = await residentPerWatch(await startAgentBefore(newServer));
	printTable(`Resident memory per idle watch, of ${watches}`, [
		{
			"agent KiB": format(ofAgent / 1_024),
			"server KiB": format(ofServer / 1_024),
			"agent ÷ server": format(ofAgent / ofServer),
		},
	]);
}

/** In bytes, while the watches are open. */
async function residentPerWatch(measured: MeasuredServer): Promise<number> {
	// The first watches of a process load and compile code.
	(await openWatches(measured.address, Math.ceil(watches / 100))).close();
	await setTimeout(idleMs);
	const before = measured.residentBytes();
	const group = await openWatches(measured.address, watches);
	await setTimeout(idleMs);
	const after = measured.residentBytes();
	group.close();
	return (after - before) / watches;
}

function openWatches(address: string, count: number): Promise<WatcherGroup> {
	return WatcherGroup.open(address, {
		...{ count, headers, namePrefix: "none" },
		contentType: "application/grpc+proto",
	});
}
