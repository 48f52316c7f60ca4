/*
 * The cost of copies: resources that a cluster imports from another one, and those that a region copies from another region of the
 * same service, and changes that reach them in this way. The alternative, in the same run, is to do without copies: a client writes
 * the same resources to an empty server, and watches the server that takes the changes. All servers are processes of their own with memory storage, on the same processor if there is taskset.
 *
 *   pnpm bench peering
 *   pnpm bench peering --resources=20000 --seconds=2 --rounds=9
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import {
	ComparisonTable,
	interleaveSteps,
	numberOption,
	quantile,
	runCallers,
} from "@plinth/bench";
import { Export, Import } from "@plinth/peering";
import { PartitionSchema, type Resource, ResourceService } from "@plinth/proto";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { idOf, Namespace, Partition, resourceOf, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { freePort } from "@plinth/test-support/ports";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../testdata/music.ts";
import { ChangesSeen } from "./changes-seen.ts";
import { headers, tenancyIn } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";

const resources = numberOption("resources", 100_000, 500);
/** How long changes are made, in each round. */
const seconds = numberOption("seconds", 5, 0.2);
const rounds = numberOption("rounds", 3, 1);
const callers = 64;

/** The namespace of the resources, and that of the changes. */
const [many, changing] = ["many", "changing"];

const app = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** A server, and its clients. */
interface Cluster {
	readonly server: MeasuredServer;
	readonly transport: Transport;
	write(resource: Resource): Promise<unknown>;
}

/** Where changes are written and watched, and the servers that have work with them. */
interface Way {
	readonly written: Cluster;
	readonly watched: Cluster;
	readonly partition: string;
	/** Of which copies are watched. */
	readonly region?: string;
	readonly servers: readonly MeasuredServer[];
}

const copies = new ComparisonTable(
	`${resources.toLocaleString("en-US")} resources: an import of them, copies of another region, and writes of a client with ${callers} callers`,
	"µs per resource",
	{ baseline: "client" },
);
const changes = new ComparisonTable(
	"Changes: until a watch has them where the copies are, and at the server that takes them",
	"ms",
	{ baseline: "direct" },
);
const costs = new ComparisonTable("Processor time of all servers, and of one server alone", "µs", {
	baseline: "direct",
});

const west = await startCluster();
await fill(west);
const meta = await startDeployment("meta", "home");
const home = await startDeployment("music", "home", meta);
await fill(home.cluster);
let imports = 0;
const former: { east?: Cluster; region?: Cluster; direct?: Cluster } = {};

const figures = await interleaveSteps(
	{
		peered: async () => {
			await former.east?.server.stop();
			const east = await startCluster();
			former.east = east;
			imports += 1;
			await establish(east, `east-${imports}`);
			const servers = [west.server, east.server];
			const way = { written: west, watched: east, partition: "west", servers };
			return stepsOf(way, () => importAll(east));
		},
		regional: async () => {
			await former.region?.server.stop();
			const region = `region-${imports}`;
			const { cluster } = await startDeployment("music", region, meta);
			former.region = cluster;
			const servers = [meta.cluster.server, home.cluster.server, cluster.server];
			const way = { written: home.cluster, watched: cluster, partition: "default", servers };
			return stepsOf({ ...way, region: "home" }, () => copyAll(cluster, region));
		},
		direct: async () => {
			await former.direct?.server.stop();
			const direct = await startCluster();
			former.direct = direct;
			const servers = [direct.server];
			const way = { written: direct, watched: direct, partition: "default", servers };
			return stepsOf(way, () => fill(direct));
		},
	},
	// All but west, home and meta are new in each round.
	{ rounds, warmUpRounds: 0 },
);
const [peered, regional, direct] = ["peered", "regional", "direct"] as const;
const of = (step: string, way: string) => figures[step]?.[way] ?? [];
copies.add("all of them", {
	...{ import: of("copy", peered), region: of("copy", regional), client: of("copy", direct) },
});
for (const [name, step] of [
	["one after the other", "latency"],
	[`with ${callers} callers, per change`, "burst"],
] as const) {
	changes.add(name, {
		...{ peered: of(step, peered), regional: of(step, regional), direct: of(step, direct) },
	});
}
for (const [name, step] of [
	["per resource", "copyCost"],
	["per change", "burstCost"],
] as const) {
	costs.add(name, {
		...{ peered: of(step, peered), regional: of(step, regional), direct: of(step, direct) },
	});
}
for (const table of [copies, changes, costs]) {
	table.print();
}
process.exit(0);

/** A deployment of a service in a region, and the address of its internal listener. */
async function startDeployment(
	service: string,
	region: string,
	registry?: { readonly internal: string },
) {
	const credentialFile = join(folder, "credential");
	writeFileSync(credentialFile, "bench-credential-of-all-deployments\n");
	const internal = `127.0.0.1:${await freePort()}`;
	const cluster = await startCluster(
		...["--internal-listen", internal, "--deployment-service", service],
		...["--deployment-region", region, "--deployment-credential-file", credentialFile],
		...(registry === undefined ? [] : ["--deployment-meta-addresses", registry.internal]),
	);
	return { cluster, internal: `http://${internal}` };
}

async function startCluster(...flags: readonly string[]): Promise<Cluster> {
	const command = [...plinthServer(app, folder), ...flags];
	const server = await startMeasured(command, join(folder, "server.log"));
	const transport = createPlinthTransport({ baseUrl: server.address });
	const client = createClient(ResourceService, transport);
	return { server, transport, write: (resource) => client.write({ resource }, { headers }) };
}

function artistIn(namespace: string, name: string, genre: string): Resource {
	const id = idOf(Artist, name, tenancyIn(namespace));
	return resourceOf(Artist, { id, data: create(ArtistSchema, { genre }) });
}

/** Writes all resources, as a client that knows them. */
async function fill(cluster: Cluster): Promise<void> {
	for (const namespace of [many, changing]) {
		await cluster.write(resourceOf(Namespace, { id: idOf(Namespace, namespace) }));
	}
	await cluster.write(artistIn(changing, "r0", "before any change"));
	let next = 0;
	const write = async () => {
		while (next < resources) {
			next += 1;
			await cluster.write(artistIn(many, `r${next}`, `genre ${next}`));
		}
	};
	await Promise.all(Array.from({ length: callers }, write));
}

/** Lets a new cluster dial west, which exports all artists to it. */
async function establish(east: Cluster, name: string): Promise<void> {
	const address = west.server.address;
	const { token } = await createClient(PeeringService, west.transport).createToken(
		{ name, address },
		{ headers },
	);
	await createClient(PeeringService, east.transport).establish(
		{ name: "west", token },
		{ headers },
	);
	const data = create(ExportSchema, {
		...{ peers: [name], partition: "default", types: [{ type: typeOf(Artist.type) }] },
	});
	await west.write(resourceOf(Export, { id: idOf(Export, "artists"), data }));
}

/** Imports all artists, and waits for them. */
async function importAll(east: Cluster): Promise<void> {
	const data = create(ImportSchema, { peer: "west", export: "artists", partition: "west" });
	await east.write(resourceOf(Import, { id: idOf(Import, "artists"), data }));
	await allCopied(east);
}

/** Lets the policy of home name the region, and waits for all artists there. */
async function copyAll(cluster: Cluster, region: string): Promise<void> {
	const data = create(PartitionSchema, { copies: { regions: [region] } });
	await home.cluster.write(resourceOf(Partition, { id: idOf(Partition, "default"), data }));
	await allCopied(cluster);
}

/** Waits until a cluster has copies of all artists. */
async function allCopied(cluster: Cluster): Promise<void> {
	const client = createClient(PeeringService, cluster.transport);
	for (;;) {
		const { peerings } = await client.listPeerings({}, { headers });
		const report = peerings.flatMap((each) => each.imports)[0];
		if (report?.lagMs === 0n && Number(report.copies[Artist.key] ?? 0n) > resources) {
			return;
		}
		await setTimeout(10);
	}
}

/** The steps of a round: all resources, changes one after the other, and changes of many callers. */
function stepsOf(way: Way, copy: () => Promise<void>) {
	const spent = () => way.servers.reduce((sum, server) => sum + server.cpuMicroseconds(), 0);
	const cost = { copy: Number.NaN, burst: Number.NaN };
	let watched: ChangesSeen | undefined;
	return {
		copy: async () => {
			const [beforeMs, before] = [performance.now(), spent()];
			await copy();
			cost.copy = (spent() - before) / resources;
			return ((performance.now() - beforeMs) * 1_000) / resources;
		},
		copyCost: () => cost.copy,
		latency: async () => {
			const { watched: cluster, partition, region } = way;
			watched = new ChangesSeen(cluster.transport, partition, changing, region);
			await changed(way, watched, 0, -1);
			const load = await runCallers(1, seconds, (_, step) => changed(way, watched, 0, step));
			return quantile(load.latenciesMs, 0.5);
		},
		burst: async () => {
			const [beforeMs, before] = [performance.now(), spent()];
			const last = new Map<number, number>();
			const load = await runCallers(callers, seconds, async (caller, step) => {
				last.set(caller, step);
				await way.written.write(artistIn(changing, `r${caller}`, `burst ${step}`));
			});
			for (const [caller, step] of last) {
				await watched?.has(`r${caller}`, `burst ${step}`);
			}
			const count = load.latenciesMs.length;
			cost.burst = (spent() - before) / count;
			watched?.close();
			return (performance.now() - beforeMs) / count;
		},
		burstCost: () => cost.burst,
	};
}

/** Writes a change, and waits until it is seen. */
async function changed(
	{ written }: Way,
	seen: ChangesSeen | undefined,
	caller: number,
	step: number,
): Promise<void> {
	const name = `r${caller}`;
	await written.write(artistIn(changing, name, `change ${step}`));
	await seen?.has(name, `change ${step}`);
}
