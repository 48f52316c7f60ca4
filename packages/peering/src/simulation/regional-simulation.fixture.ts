import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { NamespaceSchema, PartitionSchema, type Resource } from "@plinth/proto";
import type {
	StreamOfferRequest,
	StreamOfferResponse,
} from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { decodeShared, idOf, Namespace, nameKey, Partition, resourceOf } from "@plinth/resource";
import type { Random } from "@plinth/runtime";
import { type SeededRuntime, seededRandom, seededRuntime } from "@plinth/runtime/testing";
import { StorageUnavailable } from "@plinth/storage";
import { compareVersions } from "../versions.ts";
import { SimulatedCluster } from "./cluster.fixture.ts";
import { Good, good, goodId } from "./goods.fixture.ts";
import { faultyTransport, type NetworkOptions } from "./network.fixture.ts";
import { type RegionalFault, withRegionalFault } from "./regional-faults.fixture.ts";

/** The result of a simulation of regions. */
export interface RegionalResult {
	/** Descriptions of broken promises. */
	readonly violations: readonly string[];
	/** What has happened, by kind. */
	readonly counts: Readonly<Record<"copied" | "removed" | "policies" | "restores", number>>;
}

const regionNames = ["west", "east"] as const;
type RegionName = (typeof regionNames)[number];
const namespaces = ["default", "shop", "office"];
const names = ["ale", "beer", "cider"];

/** How long a stream may take to notice that a policy has changed, in virtual milliseconds. */
const noticeMs = 1_000;

/**
 * Simulates two regions that hold copies of each other, as policies that change say, over a network that loses calls and breaks
 * streams, while servers stop, storages are restored, and the registry forgets deployments. Then all faults end, and each
 * region must have what the other one offers. At last, one region stops: its copies must stay.
 */
export async function simulateRegions(
	seed: number,
	fault?: RegionalFault,
): Promise<RegionalResult> {
	const runtime = seededRuntime({ seed, maxSteps: 2_000_000 });
	const simulation = new RegionalSimulation(runtime, seededRandom(seed * 31 + 7), fault);
	return runtime.scheduler.run(simulation.run());
}

class RegionalSimulation {
	readonly #runtime: SeededRuntime;
	readonly #random: Random;
	readonly #fault: RegionalFault | undefined;
	readonly #regions: ReadonlyMap<RegionName, SimulatedCluster>;
	readonly #violations: string[] = [];
	readonly #counts = { copied: 0, removed: 0, policies: 0, restores: 0 };
	/** When a namespace of a region was last found to be offered to the other one, by the names of both. */
	readonly #offeredMs = new Map<string, number>();
	#isFaulty = false;
	/** Regions that the registry does not show. */
	readonly #hidden = new Set<RegionName>();

	constructor(runtime: SeededRuntime, random: Random, fault: RegionalFault | undefined) {
		this.#runtime = runtime;
		this.#random = random;
		this.#fault = fault;
		this.#regions = new Map(regionNames.map((name) => [name, this.#createRegion(name)]));
	}

	#createRegion(name: RegionName): SimulatedCluster {
		const other = otherOf(name);
		const mayFail = () => {
			if (this.#isFaulty && this.#random.next() < 0.03) {
				throw new StorageUnavailable("the storage can't be reached");
			}
		};
		return new SimulatedCluster({
			...{ name, mayFail, runtime: this.#runtime },
			connect: () => {
				throw new Error("no peer is dialed");
			},
			withFault: (backend) => withRegionalFault(backend, this.#fault, mayFail),
			region: {
				...{ service: "goods", region: name },
				regions: {
					others: async () =>
						this.#hidden.has(other)
							? []
							: [{ region: other, uid: this.#region(other).incarnation, addresses: [other] }],
					isDeleted: async () => this.#fault === "a region that is not found counts as deleted",
					connect: () => this.#transport(other),
				},
			},
		});
	}

	async run(): Promise<RegionalResult> {
		const all = [...this.#regions.values()];
		for (const region of all) {
			await region.start();
			await this.#restoreUnits(region);
		}
		const ended = new AbortController();
		const watches = regionNames.map((name) => this.#watch(name, ended.signal));
		this.#isFaulty = true;
		for (let step = 0; step < 120; step += 1) {
			await this.#step();
			await this.#pass(this.#random.next() < 0.15 ? 20_000 : 300);
		}
		this.#isFaulty = false;
		this.#hidden.clear();
		for (const region of all) {
			if (!region.isUp) {
				await region.start();
			}
			await this.#restoreUnits(region);
		}
		await this.#settle();
		await this.#checkThatCopiesStay();
		ended.abort(new Error("the simulation has ended"));
		await Promise.allSettled(watches);
		await Promise.all(all.map((region) => region.stop()));
		return { violations: this.#violations, counts: this.#counts };
	}

	/** Creates the namespaces, without a policy, unless they exist: a restore may have lost them. */
	async #restoreUnits(region: SimulatedCluster): Promise<void> {
		for (const namespace of namespaces) {
			const id = idOf(Namespace, namespace);
			if ((await region.backend.lookup(id)) === undefined) {
				await region.server.client.write({
					resource: resourceOf(Namespace, { id, data: create(NamespaceSchema) }),
				});
			}
		}
	}

	/** Waits until each region has what the other one offers, and reports what differs if it never has. */
	async #settle(): Promise<void> {
		let differences: readonly string[] = [];
		for (let minute = 0; minute < 12; minute += 1) {
			await this.#pass(60_000);
			differences = (await Promise.all(regionNames.map((name) => this.#differences(name)))).flat();
			if (differences.length === 0) {
				return;
			}
		}
		this.#violations.push(...differences);
	}

	/** A region that stops, and that the registry no longer shows, takes nothing away. */
	async #checkThatCopiesStay(): Promise<void> {
		const before = await this.#copiesOf("west");
		await this.#region("west").stop();
		this.#hidden.add("west");
		await this.#pass(0);
		await new Promise<void>((resolve) => this.#runtime.clock.setTimer(180_000, resolve));
		const after = await this.#copiesOf("west");
		if (before.map(textOf).join() !== after.map(textOf).join()) {
			this.#violations.push("copies of west have changed while it was away");
		}
	}

	/** How the copies of a region differ from what it offers, by a model that knows nothing of streams. */
	async #differences(home: RegionName): Promise<readonly string[]> {
		const wanted = new Map<string, string>();
		for (const each of await this.#list(home, "")) {
			const namespace = each.id?.tenancy?.namespace ?? "";
			if (await this.#isOffered(home, namespace)) {
				wanted.set(`${namespace}/${each.id?.name}`, textOf(each));
			}
		}
		const found = new Map(
			(await this.#copiesOf(home)).map((each) => [
				`${each.id?.tenancy?.namespace}/${each.id?.name}`,
				textOf(each),
			]),
		);
		return [
			...[...wanted].flatMap(([key, content]) =>
				found.get(key) === content
					? []
					: [`${key} of ${home} is copied as ${found.get(key)}, not ${content}`],
			),
			...[...found.keys()]
				.filter((key) => !wanted.has(key))
				.map((key) => `a stale copy of ${key} of ${home}`),
		];
	}

	async #isOffered(home: RegionName, namespace: string): Promise<boolean> {
		const { backend } = this.#region(home);
		const [partition, unit] = await Promise.all([
			backend.lookup(idOf(Partition, "default")),
			backend.lookup(idOf(Namespace, namespace)),
		]);
		const policies = [
			partition && decodeShared(Partition, partition).data.copies,
			unit && decodeShared(Namespace, unit).data.copies,
		];
		return policies.some((policy) => policy?.regions.includes(otherOf(home)));
	}

	#copiesOf(home: RegionName): Promise<readonly Resource[]> {
		return this.#list(otherOf(home), home);
	}

	async #list(at: RegionName, region: string): Promise<readonly Resource[]> {
		const query = {
			...{ type: Good.type, namePrefix: "", region },
			tenancy: { partition: "*", namespace: "*" },
		};
		return (await this.#region(at).backend.list(query)).resources;
	}

	/** Reports copies under the name of another resource, those that go back, and those that are written twice. */
	async #watch(at: RegionName, signal: AbortSignal): Promise<void> {
		const cluster = this.#region(at);
		while (!signal.aborted) {
			const seen = new Map<string, Resource>();
			const { backend } = cluster;
			const query = {
				...{ type: Good.type, namePrefix: "", region: "*" },
				tenancy: { partition: "*", namespace: "*" },
			};
			try {
				for await (const event of backend.watchList(query, { signal })) {
					if ("resource" in event && event.resource.id !== undefined) {
						const key = nameKey(event.resource.id);
						this.#check(at, seen.get(key), event.resource);
						if (event.kind === "upsert") {
							seen.set(key, event.resource);
							this.#counts.copied += event.resource.origin === undefined ? 0 : 1;
						} else {
							seen.delete(key);
							this.#counts.removed += event.resource.origin === undefined ? 0 : 1;
						}
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

	#check(at: RegionName, before: Resource | undefined, { id, origin, version }: Resource): void {
		if ((origin === undefined) !== (id?.region === undefined)) {
			this.#violations.push(`${id?.name} at ${at} is a copy without a region`);
		}
		if (id?.region === at) {
			this.#violations.push(`${at} has a copy of itself`);
		}
		const old = before?.origin;
		const isSameSource = old !== undefined && old.incarnation === origin?.incarnation;
		if (isSameSource && before?.version !== version) {
			const order = compareVersions(origin?.version ?? "", old.version);
			if (order < 0) {
				this.#violations.push(`${id?.name} at ${at} went back`);
			}
		}
	}

	/** Checks what leaves a region: only what was offered until shortly before. */
	async #sent(home: RegionName, { message }: StreamOfferResponse): Promise<void> {
		const sent = message?.message;
		if (sent?.case !== "upsert" || sent.value.resource === undefined) {
			return;
		}
		const { id, origin, owner, metadata } = sent.value.resource;
		const namespace = id?.tenancy?.namespace ?? "";
		const offeredMs = this.#offeredMs.get(`${home}/${namespace}`) ?? Number.NEGATIVE_INFINITY;
		const isOffered = await this.#isOffered(home, namespace);
		if (!isOffered && this.#runtime.clock.now() - offeredMs > noticeMs) {
			this.#violations.push(`${namespace}/${id?.name} has left ${home}, and is not offered`);
		}
		if (origin?.region !== home || origin.path.length > 0) {
			this.#violations.push(`${id?.name} has left ${home} with a wrong origin`);
		}
		if (owner !== undefined || "finalizers" in metadata || "deletionTimestamp" in metadata) {
			this.#violations.push(`what stays home has left ${home}`);
		}
	}

	async #step(): Promise<void> {
		const name = this.#pick(regionNames);
		const region = this.#region(name);
		const drawn = this.#random.next();
		if (drawn < 0.62) {
			await this.#tolerating(() => this.#writeOrDelete(region));
		} else if (drawn < 0.76) {
			await this.#tolerating(() => this.#changePolicy(name));
		} else if (drawn < 0.8) {
			region.revokeLease();
		} else if (drawn < 0.88) {
			if (!region.isUp) {
				await region.start();
			} else if (drawn < 0.83) {
				await region.stop();
			}
		} else if (drawn < 0.9) {
			await region.takeBackup();
		} else if (drawn < 0.93) {
			await region.stop();
			await this.#noteOffered(name);
			await region.restore();
			this.#counts.restores += 1;
			await region.start();
		} else if (drawn < 0.96) {
			this.#hidden.add(name);
		} else {
			this.#hidden.clear();
		}
	}

	async #writeOrDelete({ server: { client } }: SimulatedCluster): Promise<void> {
		const [name, namespace] = [this.#pick(names), this.#pick(namespaces)];
		if (this.#random.next() < 0.25) {
			await client.delete({ id: goodId(name, "default", namespace) });
			return;
		}
		const resource = good(name, `${this.#runtime.clock.now()}`, namespace);
		resource.metadata = { finalizers: this.#random.next() < 0.2 ? "held" : "" };
		await client.write({ resource });
	}

	async #changePolicy(name: RegionName): Promise<void> {
		const { client } = this.#region(name).server;
		const regions = this.#random.next() < 0.5 ? [otherOf(name)] : [];
		await this.#noteOffered(name);
		this.#counts.policies += 1;
		if (this.#random.next() < 0.3) {
			const data = create(PartitionSchema, { copies: { regions: [name, ...regions] } });
			await client.write({
				resource: resourceOf(Partition, { id: idOf(Partition, "default"), data }),
			});
			return;
		}
		const id = idOf(Namespace, this.#pick(namespaces));
		const data = create(NamespaceSchema, { copies: { regions } });
		await client.write({ resource: resourceOf(Namespace, { id, data }) });
	}

	/** What is offered now may be sent for a while, also if it is no longer offered then. */
	async #noteOffered(home: RegionName): Promise<void> {
		for (const namespace of namespaces) {
			if (await this.#isOffered(home, namespace)) {
				this.#offeredMs.set(`${home}/${namespace}`, this.#runtime.clock.now());
			}
		}
	}

	/** A network to a region. */
	#transport(to: RegionName) {
		const backend = () => this.#region(to).backend;
		const options: NetworkOptions<StreamOfferRequest, StreamOfferResponse> = {
			runtime: this.#runtime,
			random: this.#random,
			isFaulty: () => this.#isFaulty,
			onSent: (message) => {
				this.#sent(to, message).catch(() => {});
			},
		};
		const loses = this.#fault === "resumes lose what has changed meanwhile";
		return faultyTransport<StreamOfferRequest, StreamOfferResponse>(
			() => this.#region(to).server.exchange,
			{
				...options,
				...(loses && {
					changeRequest: async ({ stream }) => {
						for (const position of stream?.positions ?? []) {
							if (position.version !== "") {
								position.version = await backend().catchUp(new AbortController().signal);
							}
						}
					},
				}),
			},
		);
	}

	#region(name: RegionName): SimulatedCluster {
		const region = this.#regions.get(name);
		if (region === undefined) {
			throw new Error(`no region ${name}`);
		}
		return region;
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

function otherOf(region: RegionName): RegionName {
	return region === "west" ? "east" : "west";
}

/** A good or a copy of it as text, without what copies don't have. */
function textOf(resource: Resource): string {
	const { note, secret } = decodeShared(Good, resource).data;
	const { origin, id, generation, version } = resource;
	const home = origin ?? { uid: id?.uid, version };
	return `${id?.name}: ${note} ${secret} ${generation} ${home.uid} ${home.version}`;
}
