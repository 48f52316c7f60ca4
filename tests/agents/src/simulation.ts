import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { Export, Import } from "@plinth/peering";
import { Good, good } from "@plinth/peering/testing";
import type { StreamResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { idOf, nameKey, newUlid, resourceOf, typeOf } from "@plinth/resource";
import { seededRuntime } from "@plinth/runtime/testing";
import type { Mutation } from "@plinth/storage";
import { type Copying, differences, judgeBytes, judgeMessage } from "./checks/export-check.ts";
import { judgeWrites } from "./checks/write-check.ts";
import { Cluster } from "./cluster/cluster.ts";
import { batchNames, exportedPrefixes, goodIdIn, names } from "./goods.ts";
import { Faults } from "./network/faults.ts";
import { Network } from "./network/network.ts";
import { type PlantedFault, plant } from "./planted-faults.ts";
import { Users } from "./users.ts";
import { Watcher, type WatcherOptions } from "./watchers.ts";

/** The result of a simulation. */
export interface SimulationResult {
	/** Descriptions of broken promises. */
	readonly violations: readonly string[];
	/** What has happened, by kind. */
	readonly counts: SimulationCounts;
	/** What has happened, in short: the same for the same seed. */
	readonly trace: string;
}

/** What has happened in a simulation, or in several. */
export interface SimulationCounts {
	writes: number;
	acknowledged: number;
	unknown: number;
	reads: number;
	events: number;
	moved: number;
	retried: number;
	repeatedWrites: number;
	exported: number;
	restores: number;
}

/** Options of a simulation. */
export interface SimulationOptions {
	/** A fault that is planted. */
	readonly fault?: PlantedFault;
	/** The number of steps with faults, of calls and disruptions; 160 by default. */
	readonly steps?: number;
}

/** How long everything may take to come to rest without faults, and how often that is checked, in milliseconds. */
const settleMs = 600_000;
const checkMs = 10_000;

/**
 * Simulates two clusters of three and two servers behind agents. Users write, read and watch at the agents, and each cluster
 * imports from the other, while connections break and are late, servers and agents stop and are killed, storages fail and are
 * restored, and exports, imports and the servers of agents change. Then all faults end, and everything must come to rest.
 * A run ends with the first violation.
 */
export async function simulate(
	seed: number,
	{ fault, steps = 160 }: SimulationOptions = {},
): Promise<SimulationResult> {
	const remove = plant(fault);
	try {
		const runtime = seededRuntime({ seed, maxSteps: 5_000_000 });
		const simulation = new Simulation(new Faults(runtime, seed * 31 + 7), fault);
		return await runtime.scheduler.run(simulation.run(steps));
	} finally {
		remove();
	}
}

class Simulation {
	readonly #faults: Faults;
	readonly #network: Network;
	readonly #violations: string[] = [];
	readonly #counts: SimulationCounts = {
		...{ writes: 0, acknowledged: 0, unknown: 0, reads: 0, events: 0 },
		...{ moved: 0, retried: 0, repeatedWrites: 0, exported: 0, restores: 0 },
	};
	readonly #home: Cluster;
	readonly #peer: Cluster;
	readonly #copyings: readonly Copying[];
	readonly #users: readonly Users[];
	readonly #watchers: readonly Watcher[];
	/** The uids of the clusters. */
	readonly #uids = new Map<Cluster, string>();
	#batches = 0;

	constructor(faults: Faults, fault: PlantedFault | undefined) {
		this.#faults = faults;
		this.#network = new Network(faults);
		this.#home = this.#cluster("home", 3, 2, fault);
		this.#peer = this.#cluster("peer", 2, 1, fault);
		this.#copyings = [
			{ from: this.#home, to: this.#peer, source: "default", name: "from-home" },
			// What came from there must not go back.
			{ from: this.#peer, to: this.#home, source: "from-home", name: "back" },
			{ from: this.#peer, to: this.#home, source: "default", name: "from-peer" },
		];
		const onViolation = this.#violated;
		this.#users = [this.#home, this.#peer].map(
			(cluster) => new Users({ cluster, faults, onViolation }),
		);
		const all = { partition: "*", namePrefix: "" };
		const some = { partition: "default", namePrefix: "" };
		const watchers: readonly Pick<WatcherOptions, "cluster" | "agent" | "protocol" | "views">[] = [
			{ cluster: this.#home, agent: 0, protocol: "grpc", views: [some] },
			{ cluster: this.#home, agent: 1, protocol: "json", views: [all] },
			{ cluster: this.#home, agent: 1, protocol: "connect", views: [some] },
			{
				cluster: this.#home,
				agent: 0,
				protocol: "grpc",
				views: [all, { partition: "default", namePrefix: "lot-" }],
			},
			{ cluster: this.#peer, agent: 0, protocol: "grpc", views: [all] },
		];
		const onEvent = () => {
			this.#counts.events += 1;
		};
		this.#watchers = watchers.map((each) => new Watcher({ ...each, faults, onEvent, onViolation }));
	}

	async run(steps: number): Promise<SimulationResult> {
		await this.#begin();
		const ended = new AbortController();
		const watching = this.#watchers.map((watcher) => watcher.run(ended.signal));
		this.#faults.areOn = true;
		for (let step = 0; step < steps && this.#violations.length === 0; step += 1) {
			await this.#step();
			await this.#faults.wait(this.#faults.happens(0.05) ? 10_000 : 150);
		}
		this.#faults.areOn = false;
		if (this.#violations.length === 0) {
			await this.#settle();
		}
		ended.abort(new Error("the simulation has ended"));
		await Promise.all(watching);
		for (const [at, cluster] of this.#clusters.entries()) {
			this.#violations.push(...judgeWrites(this.#users[at]?.writes ?? [], cluster.history));
		}
		await Promise.all(this.#clusters.map((cluster) => cluster.end()));
		return this.#result();
	}

	get #clusters(): readonly Cluster[] {
		return [this.#home, this.#peer];
	}

	readonly #violated = (text: string): void => {
		this.#violations.push(text);
	};

	#cluster(name: string, servers: number, agents: number, fault: PlantedFault | undefined) {
		const cluster: Cluster = new Cluster({
			...{ name, servers, agents, fault, network: this.#network, counts: this.#counts },
			serverOf: (other) => (other === "home" ? this.#home : this.#peer).address,
			onExported: (message) => this.#exported(cluster, message),
			onSentToPeer: (bytes) => this.#violations.push(...judgeBytes(bytes)),
			onFault: (failure) =>
				this.#violated(
					`${name} has an internal error: ${failure instanceof Error ? failure.stack : failure}`,
				),
		});
		return cluster;
	}

	#exported(from: Cluster, message: StreamResponse): void {
		const to = from === this.#home ? this.#peer : this.#home;
		this.#counts.exported += message.message.case === "upsert" ? 1 : 0;
		this.#violations.push(...judgeMessage(message, this.#uids.get(to) ?? ""));
	}

	async #begin(): Promise<void> {
		for (const cluster of this.#clusters) {
			await cluster.begin();
		}
		for (const [from, to] of [
			[this.#home, this.#peer],
			[this.#peer, this.#home],
		] as const) {
			const { token } = await from.peerings.createToken({ name: to.name });
			// Somebody carries it to the other cluster. Meanwhile, all servers of the first one learn of it.
			await this.#pass(1_000);
			await to.peerings.establish({ name: `of-${from.name}`, token });
			this.#uids.set(from, await this.#uidOf(from, to));
		}
		await this.#declare();
	}

	/** The uid of a cluster, as another one knows it: the server that is asked may lag behind. */
	async #uidOf(cluster: Cluster, at: Cluster): Promise<string> {
		for (;;) {
			const { peerings } = await at.peerings.listPeerings({});
			const uid = peerings.find(({ name }) => name === `of-${cluster.name}`)?.cluster ?? "";
			if (uid !== "") {
				return uid;
			}
			await this.#faults.wait(100);
		}
	}

	async #step(): Promise<void> {
		const faults = this.#faults;
		const cluster = faults.happens(0.7) ? this.#home : this.#peer;
		const users = this.#users[cluster === this.#home ? 0 : 1];
		for (let calls = faults.below(4); calls > 0; calls -= 1) {
			users?.call();
		}
		if (faults.happens(0.4)) {
			this.#commitBatch(cluster);
		}
		const server = faults.pick(cluster.running);
		const drawn = faults.below(100);
		if (drawn < 15) {
			faults.pick([...this.#network.links])?.lose();
		} else if (drawn < 21) {
			if (server !== undefined) {
				cluster.crash(server);
			}
		} else if (drawn < 26) {
			if (server !== undefined) {
				void cluster.stop(server);
			}
		} else if (drawn < 56) {
			cluster.startOne();
		} else if (drawn < 58) {
			cluster.replaceAgent(faults.below(100));
		} else if (drawn < 63) {
			cluster.setServers(faults.below(100), () => faults.happens(0.6));
		} else if (drawn < 66) {
			cluster.storage.compact();
		} else if (drawn < 68) {
			cluster.storage.leases.revoke("peering-imports");
		} else if (drawn < 70) {
			cluster.storage.takeBackup();
		} else if (drawn < 71) {
			this.#counts.restores += cluster.restore() ? 1 : 0;
			cluster.startAll();
		} else if (drawn < 73) {
			void this.#undeclare();
		} else if (drawn < 76) {
			void this.#declare();
		}
	}

	/** Changes several goods in one commit, as a controller may. */
	#commitBatch({ storage, name: cluster }: Cluster): void {
		this.#batches += 1;
		const note = `batch ${cluster} ${this.#batches}`;
		const written = [...names, ...batchNames].filter(() => this.#faults.happens(0.5));
		storage.commit(
			written.map((name): Mutation => {
				const id = goodIdIn("default", name);
				const stored = storage.contents.get(nameKey(id));
				const isLot = batchNames.some((each) => each === name);
				if (isLot && stored?.id !== undefined && this.#faults.happens(0.5)) {
					return { op: "delete", id: stored.id, expectedVersion: stored.version };
				}
				const { runtime } = this.#faults;
				return {
					op: "put",
					resource: {
						...good(name, note),
						id: stored?.id ?? { ...id, uid: newUlid(runtime) },
						generation: newUlid(runtime),
					},
					expectedVersion: stored?.version ?? "",
				};
			}),
		);
	}

	/** Declares the exports and imports that don't exist. */
	async #declare(): Promise<void> {
		for (const { from, to, source, name } of this.#copyings) {
			const offered = create(ExportSchema, {
				peers: [to.name],
				partition: source,
				types: [
					{
						type: typeOf(Good.type),
						namePrefixes: [...exportedPrefixes],
						maskedFields: ["data.secret"],
					},
				],
			});
			await ensure(from, resourceOf(Export, { id: idOf(Export, name), data: offered }));
			const taken = create(ImportSchema, {
				...{ peer: `of-${from.name}`, export: name, partition: name },
			});
			await ensure(to, resourceOf(Import, { id: idOf(Import, name), data: taken }));
		}
	}

	/** Deletes an export or an import. */
	async #undeclare(): Promise<void> {
		const copying = this.#faults.pick(this.#copyings);
		const isExport = this.#faults.happens(0.5);
		const cluster = isExport ? copying?.from : copying?.to;
		const id = idOf(isExport ? Export : Import, copying?.name ?? "");
		await tolerating(cluster?.clientOf(0, "grpc").resources.delete({ id }));
	}

	/** Waits until all is at rest, and reports what is not. */
	async #settle(): Promise<void> {
		for (const cluster of this.#clusters) {
			cluster.setAllServers();
		}
		let problems: readonly string[] = [];
		for (let passedMs = 0; passedMs < settleMs; passedMs += checkMs) {
			for (const cluster of this.#clusters) {
				cluster.startAll();
			}
			await this.#declare();
			await this.#pass(checkMs);
			problems = [
				...this.#copyings.flatMap((each) => differences(each, this.#uids.get(each.to) ?? "")),
				...this.#watchers.flatMap(({ isCurrent }, at) =>
					isCurrent ? [] : [`watcher ${at} has not received all`],
				),
			];
			if (problems.length === 0) {
				break;
			}
		}
		this.#violations.push(...problems);
		await Promise.all(this.#users.map((users) => users.finished()));
	}

	#pass(ms: number): Promise<void> {
		return new Promise((resolve) => {
			this.#faults.runtime.clock.setTimer(ms, resolve);
		});
	}

	#result(): SimulationResult {
		const writes = this.#users.flatMap((users) => users.writes);
		const outcomes = writes.map(({ outcome }) => outcome?.kind);
		this.#counts.writes = writes.length;
		this.#counts.acknowledged = outcomes.filter((kind) => kind === "acknowledged").length;
		this.#counts.unknown = outcomes.filter((kind) => kind === "unknown").length;
		this.#counts.reads = this.#users.reduce((sum, { reads }) => sum + reads, 0);
		const ends = this.#clusters.map(({ history }) => history.entries.length);
		return {
			violations: this.#violations,
			counts: this.#counts,
			trace: [...ends, this.#faults.runtime.clock.monotonic(), ...outcomes].join(" "),
		};
	}
}

async function ensure(cluster: Cluster, resource: ReturnType<typeof resourceOf>): Promise<void> {
	if (resource.id === undefined || cluster.storage.contents.has(nameKey(resource.id))) {
		return;
	}
	await tolerating(cluster.clientOf(0, "grpc").resources.write({ resource }));
}

/** Waits for a call that may fail, as it is made again at the end. */
async function tolerating(call: Promise<unknown> | undefined): Promise<void> {
	try {
		await call;
	} catch (failure) {
		if (!(failure instanceof ConnectError)) {
			throw failure;
		}
	}
}
