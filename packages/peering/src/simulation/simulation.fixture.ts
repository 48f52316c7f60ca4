import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type {
	StreamRequest,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ExportSchema, ImportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { decodeShared, idOf, resourceOf, typeOf } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { type SeededRuntime, seededRandom, seededRuntime } from "@plinth/runtime/testing";
import { StorageUnavailable } from "@plinth/storage";
import { Export, Import } from "../types.ts";
import { compareVersions } from "../versions.ts";
import { SimulatedCluster } from "./cluster.fixture.ts";
import { contentOf, Good, good, goodId, privatePrefix } from "./goods.fixture.ts";
import { faultyTransport, type NetworkOptions } from "./network.fixture.ts";
import { type PlantedFault, withFault } from "./planted-faults.fixture.ts";

/** The result of a simulation. */
export interface SimulationResult {
	/** Descriptions of broken promises. */
	readonly violations: readonly string[];
	/** What has happened, by kind. */
	readonly counts: Readonly<Record<"copied" | "unchanged" | "snapshots" | "restores", number>>;
}

/** An import of the simulation. */
interface Link {
	readonly from: string;
	readonly to: string;
	/** The partition at home. */
	readonly source: string;
	/** The name of the Export and the Import, and the partition of the copies. */
	readonly name: string;
}

/** Copies of `west` at `east`, of those at `north`, and back: a circle. And copies of `east` at `west`. */
const links: readonly Link[] = [
	{ from: "west", to: "east", source: "default", name: "from-west" },
	{ from: "east", to: "north", source: "from-west", name: "passed-on" },
	{ from: "north", to: "west", source: "passed-on", name: "circle" },
	{ from: "east", to: "west", source: "default", name: "from-east" },
];

const names = ["ale", "beer", "cider", "gin", `${privatePrefix}rum`, `${privatePrefix}sake`];

/**
 * Simulates three clusters that copy from each other over a network that loses calls and breaks streams, while servers
 * stop, storages are restored, and exports and imports change. Then all faults end, and the copies must equal the exports.
 */
export async function simulate(seed: number, fault?: PlantedFault): Promise<SimulationResult> {
	const runtime = seededRuntime({ seed, maxSteps: 2_000_000 });
	const simulation = new Simulation(runtime, seededRandom(seed * 31 + 7), fault);
	return runtime.scheduler.run(simulation.run());
}

class Simulation {
	readonly #runtime: SeededRuntime;
	readonly #random: Random;
	readonly #clusters: ReadonlyMap<string, SimulatedCluster>;
	readonly #fault: PlantedFault | undefined;
	readonly #violations: string[] = [];
	readonly #counts = { copied: 0, unchanged: 0, snapshots: 0, restores: 0 };
	#isFaulty = false;
	/** The uids of the clusters, by name. */
	readonly #uids = new Map<string, string>();

	constructor(runtime: SeededRuntime, random: Random, fault: PlantedFault | undefined) {
		this.#runtime = runtime;
		this.#random = random;
		this.#fault = fault;
		const names = ["west", "east", "north"];
		this.#clusters = new Map(
			names.map((name) => {
				const connect = ({ address }: { readonly address: string }) => ({
					transport: this.#transport(name, new URL(address).hostname),
					close: () => {},
				});
				const mayFail = () => {
					if (this.#isFaulty && this.#random.next() < 0.03) {
						throw new StorageUnavailable("the storage can't be reached");
					}
				};
				return [
					name,
					new SimulatedCluster({
						...{ name, runtime, connect, mayFail },
						withFault: (backend) => withFault(backend, fault, mayFail),
					}),
				];
			}),
		);
	}

	async run(): Promise<SimulationResult> {
		const all = [...this.#clusters.values()];
		for (const cluster of all) {
			await cluster.start();
		}
		for (const { from, to } of links) {
			await this.#peer(from, to);
		}
		for (const link of links) {
			await this.#export(link);
			await this.#import(link);
		}
		const ended = new AbortController();
		const watches = all.map((cluster) => this.#watch(cluster, ended.signal));
		this.#isFaulty = true;
		for (let step = 0; step < 120; step += 1) {
			await this.#step();
			await this.#pass(this.#random.next() < 0.15 ? 20_000 : 300);
		}
		this.#isFaulty = false;
		for (const cluster of all) {
			if (!cluster.isUp) {
				await cluster.start();
			}
		}
		for (const link of links) {
			await this.#export(link);
			await this.#import(link);
		}
		await this.#settle();
		ended.abort(new Error("the simulation has ended"));
		await Promise.allSettled(watches);
		await Promise.all(all.map((cluster) => cluster.stop()));
		return { violations: this.#violations, counts: this.#counts };
	}

	/** Waits until the copies equal the exports, and reports what differs if they never do. */
	async #settle(): Promise<void> {
		let differences: readonly string[] = [];
		for (let minute = 0; minute < 12; minute += 1) {
			await this.#pass(60_000);
			differences = (await Promise.all(links.map((link) => this.#differences(link)))).flat();
			if (differences.length === 0) {
				return;
			}
		}
		this.#violations.push(...differences);
	}

	async #differences({ from, to, source, name }: Link): Promise<readonly string[]> {
		const receiver = this.#uids.get(to) ?? "";
		const offered = (await this.#goods(from, source)).filter(
			({ id, origin }) =>
				!id?.name.startsWith(privatePrefix) && !(origin?.path.includes(receiver) ?? false),
		);
		const copies = await this.#goods(to, name);
		const wanted = new Map(offered.map((each) => [each.id?.name, contentOf(each)]));
		const found = new Map(copies.map((each) => [each.id?.name, contentOf(each)]));
		return [
			...[...wanted].flatMap(([key, content]) => {
				const copied = found.get(key);
				// The secret is masked.
				return copied === content ? [] : [`${name}: ${copied} at ${to}, and ${content} at ${from}`];
			}),
			...[...found.keys()]
				.filter((key) => !wanted.has(key))
				.map((key) => `${name}: ${key} is stale at ${to}`),
		];
	}

	async #goods(cluster: string, partition: string): Promise<readonly Resource[]> {
		const { backend } = this.#cluster(cluster);
		const tenancy = { partition, namespace: "*" };
		return (await backend.list({ type: Good.type, tenancy, namePrefix: "" })).resources;
	}

	/** Reports copies that go back, and those that are written twice for one version of the original. */
	async #watch(cluster: SimulatedCluster, signal: AbortSignal): Promise<void> {
		while (!signal.aborted) {
			const seen = new Map<string, Resource>();
			const { backend } = cluster;
			const query = {
				type: Good.type,
				tenancy: { partition: "*", namespace: "*" },
				namePrefix: "",
				region: "*",
			};
			try {
				for await (const event of backend.watchList(query, { signal })) {
					if (event.kind === "upsert" && event.resource.origin !== undefined) {
						this.#counts.copied += 1;
						const key = `${event.resource.id?.tenancy?.partition}/${event.resource.id?.name}`;
						this.#check(cluster.name, key, seen.get(key), event.resource);
						seen.set(key, event.resource);
					} else if (event.kind === "delete") {
						seen.delete(`${event.resource.id?.tenancy?.partition}/${event.resource.id?.name}`);
					}
					if (backend !== cluster.backend) {
						break;
					}
				}
			} catch {
				await this.#pass(1);
			}
		}
	}

	#check(cluster: string, key: string, before: Resource | undefined, after: Resource): void {
		const [old, now] = [before?.origin, after.origin];
		if (old === undefined || now === undefined || old.incarnation !== now.incarnation) {
			return;
		}
		const order = compareVersions(now.version, old.version);
		if (order < 0) {
			this.#violations.push(`${key} at ${cluster} went back`);
		} else if (order === 0 && before !== undefined && contentOf(before) === contentOf(after)) {
			this.#violations.push(`${key} at ${cluster} was written twice`);
		}
	}

	/** Checks what leaves a cluster. */
	#sent(from: string, to: string, { message }: StreamResponse): void {
		if (message.case === "snapshotStart") {
			this.#counts.snapshots += 1;
		}
		if (message.case === "unchanged" || message.case === "delete" || message.case === "upsert") {
			this.#counts.unchanged += message.case === "unchanged" ? 1 : 0;
			const name =
				message.case === "upsert" ? (message.value.resource?.id?.name ?? "") : message.value.name;
			if (name.startsWith(privatePrefix)) {
				this.#violations.push(`${name} has left ${from}`);
			}
		}
		if (message.case === "upsert" && message.value.resource !== undefined) {
			const { resource } = message.value;
			const { origin, owner, metadata } = resource;
			if (decodeShared(Good, resource).data.secret !== "") {
				this.#violations.push(`a masked field has left ${from}`);
			}
			if (owner !== undefined || "finalizers" in metadata || "deletionTimestamp" in metadata) {
				this.#violations.push(`what stays home has left ${from}`);
			}
			const receiver = this.#uids.get(to) ?? "";
			if (origin?.cluster === receiver || origin?.path.includes(receiver)) {
				this.#violations.push(`a copy of what is at ${to} is sent to it by ${from}`);
			}
		}
	}

	async #step(): Promise<void> {
		const cluster = this.#pick([...this.#clusters.values()]);
		const drawn = this.#random.next();
		const link = this.#pick(links);
		if (drawn < 0.76) {
			await this.#tolerating(async () => {
				const name = this.#pick(names);
				const { client } = cluster.server;
				if (this.#random.next() < 0.25) {
					await client.delete({ id: goodId(name) });
					return;
				}
				const resource = good(name, `${this.#runtime.clock.now()}`);
				if (this.#random.next() < 0.2) {
					resource.metadata = { finalizers: "held" };
				} else {
					resource.metadata = { finalizers: "" };
				}
				await client.write({ resource });
			});
		} else if (drawn < 0.8) {
			cluster.revokeLease();
		} else if (drawn < 0.9) {
			if (!cluster.isUp) {
				await cluster.start();
			} else if (drawn < 0.84) {
				await cluster.stop();
			}
		} else if (drawn < 0.91) {
			await cluster.takeBackup();
		} else if (drawn < 0.93 && cluster.name !== "north") {
			await cluster.stop();
			await cluster.restore();
			this.#counts.restores += 1;
			await cluster.start();
		} else if (drawn < 0.94) {
			const { client } = this.#cluster(link.to).isUp ? this.#cluster(link.to).server : {};
			await this.#tolerating(async () => client?.delete({ id: idOf(Import, link.name) }));
		} else if (drawn < 0.95) {
			const { client } = this.#cluster(link.from).isUp ? this.#cluster(link.from).server : {};
			await this.#tolerating(async () => client?.delete({ id: idOf(Export, link.name) }));
		} else {
			await this.#tolerating(() => this.#export(link));
			await this.#tolerating(() => this.#import(link));
		}
	}

	async #peer(from: string, to: string): Promise<void> {
		const { peerings } = this.#cluster(from).server;
		const { token } = await peerings.createToken({ name: to });
		await this.#cluster(to).server.peerings.establish({ name: `of-${from}`, token });
		for (const [name, role] of [
			[from, "of-"],
			[to, ""],
		] as const) {
			const reports = (
				await this.#cluster(role === "" ? from : to).server.peerings.listPeerings({})
			).peerings;
			const report = reports.find((each) => each.name === `${role}${name}`);
			this.#uids.set(name, report?.cluster ?? "");
		}
	}

	async #export({ from, to, source, name }: Link): Promise<void> {
		const namePrefixes = names.filter((each) => !each.startsWith(privatePrefix));
		const data = create(ExportSchema, {
			peers: [to],
			partition: source,
			types: [{ type: typeOf(Good.type), namePrefixes, maskedFields: ["data.secret"] }],
		});
		const resource = resourceOf(Export, { id: idOf(Export, name), data });
		if ((await this.#cluster(from).backend.lookup(idOf(Export, name))) !== undefined) {
			return;
		}
		await this.#cluster(from).server.client.write({ resource });
	}

	async #import({ from, to, name }: Link): Promise<void> {
		const data = create(ImportSchema, { peer: `of-${from}`, export: name, partition: name });
		const resource = resourceOf(Import, { id: idOf(Import, name), data });
		if ((await this.#cluster(to).backend.lookup(idOf(Import, name))) !== undefined) {
			return;
		}
		await this.#cluster(to).server.client.write({ resource });
	}

	#transport(from: string, to: string) {
		const options: NetworkOptions<StreamRequest, StreamResponse> = {
			runtime: this.#runtime,
			random: this.#random,
			isFaulty: () => this.#isFaulty,
			onSent: (message) => this.#sent(to, from, message),
		};
		const loses = this.#fault === "resumes lose what has changed meanwhile";
		const backend = () => this.#cluster(to).backend;
		return faultyTransport<StreamRequest, StreamResponse>(() => this.#cluster(to).server.exchange, {
			...options,
			...(loses && {
				changeRequest: async (request) => {
					for (const position of request.positions) {
						if (position.version !== "") {
							position.version = await backend().catchUp(new AbortController().signal);
						}
					}
				},
			}),
		});
	}

	#cluster(name: string): SimulatedCluster {
		const cluster = this.#clusters.get(name);
		if (cluster === undefined) {
			throw new Error(`no cluster ${name}`);
		}
		return cluster;
	}

	async #tolerating(act: () => Promise<unknown>): Promise<void> {
		try {
			await act();
		} catch (error) {
			if (!(error instanceof ConnectError)) {
				throw error;
			}
		}
	}

	#pass(ms: number): Promise<void> {
		return new Promise((resolve) => {
			this.#runtime.clock.setTimer(this.#random.next() * ms, resolve);
		});
	}

	#pick<T>(from: readonly T[]): T {
		return from[Math.floor(this.#random.next() * from.length)] as T;
	}
}
