import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createControllerManager, type ResourceClient } from "@plinth/controller";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	createResourceServiceCloningClient,
	type ID,
	NamespaceSchema,
	PartitionSchema,
	type Resource,
	ResourceService,
} from "@plinth/proto";
import {
	finalizersKey,
	finalizersOf,
	idOf,
	isMarkedForDeletion,
	Namespace,
	Partition,
	type ResourceType,
	resourceOf,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { EventLoopScheduler, type Random, silentLogger } from "@plinth/runtime";
import {
	SeededEventLoop,
	type SeededEventLoopOptions,
	type SeededRuntime,
	seededRandom,
	seededRuntime,
} from "@plinth/runtime/testing";
import { Thing, ThingSchema } from "../../testdata/thing.ts";
import { registerControllers } from "../system.fixture.ts";
import { startCrowd } from "./crowd.fixture.ts";
import { followerOf, Origin } from "./follower.fixture.ts";
import { OwnerCheck } from "./owner-check.fixture.ts";
import { type PlantedFault, withFault } from "./planted-faults.fixture.ts";
import { TenancyCheck } from "./tenancy-check.fixture.ts";

/** The result of a simulation. */
export interface SimulationResult {
	/** Descriptions of broken promises. */
	readonly violations: readonly string[];
	/** The number of namespaces and partitions that were removed. */
	readonly removed: number;
	/** The number of tombstones of owners that were removed. */
	readonly removedTombstones: number;
	/** The longest time in which the first server let nothing else run, in milliseconds. 0 without a crowd. */
	readonly longestMs: number;
}

/** Options of a simulation. */
export interface SimulationOptions {
	/** Whether users work on namespaces and partitions, or on things that own each other. Default: tenants. */
	readonly users?: "tenants" | "owners";
	/** A fault of both servers. */
	readonly fault?: PlantedFault;
	/**
	 * Whether a crowd uses the first server too: loops that never wait, writers of one resource, and many watchers. Its
	 * calls and controllers then run as microtasks, as in a process.
	 */
	readonly crowd?: SeededEventLoopOptions;
}

/** A server of the cluster. */
interface SimulatedServer {
	readonly client: ResourceClient;
	stop(): Promise<void>;
}

/**
 * Simulates two servers on one storage, each with its own lagging view. The one that runs the singletons may lack
 * the type of most resources. Users create namespaces and partitions, write into them, delete them through
 * either server, and remove finalizers during deletions. After they stop, everything that is marked for
 * deletion, and everything that a deleted resource owned, must be deleted.
 */
export async function simulate(
	seed: number,
	{ users: kind = "tenants", fault, crowd: crowded }: SimulationOptions = {},
): Promise<SimulationResult> {
	const runtime = seededRuntime({ seed, maxSteps: 400_000 });
	const random = seededRandom(seed * 31 + 7);
	const { scheduler } = runtime;
	const origin = new Origin(runtime);
	const check = new TenancyCheck(origin);
	const owners = new OwnerCheck(origin);
	const faults: string[] = [];
	const eventLoop = crowded && new SeededEventLoop(scheduler, seededRandom(seed ^ 0x85eb), crowded);
	const start = (isLeader: boolean, types: readonly ResourceType[], loop?: SeededEventLoop) =>
		startServer(origin, runtime, {
			...{ isLeader, types, faults },
			...(fault && { fault }),
			...(loop && { eventLoop: loop }),
		});
	const first = await scheduler.run(start(true, seed % 4 === 0 ? [Thing] : [], eventLoop));
	const second = await scheduler.run(start(false, [Thing]));
	const crowd = eventLoop && startCrowd(first.client, seed);
	const unfinished = () => [
		...marked(origin).map((name) => `${name} is marked, and is not deleted`),
		...owners.orphans(),
	];
	const users = Array.from({ length: 4 }, () =>
		new User([first.client, second.client], runtime, random).act(40, kind),
	);
	await scheduler.run(Promise.all(users));
	await scheduler.run(Promise.resolve(crowd?.calls));
	await scheduler.run(new User([second.client], runtime, random).releaseEverything(origin));
	for (let minute = 0; minute < 15 && unfinished().length > 0; minute++) {
		await scheduler.advance(60_000);
	}
	const left = unfinished();
	// What watchers still have to receive reaches them.
	await scheduler.advance(1_000);
	const missed = (await scheduler.run(Promise.resolve(crowd?.end()))) ?? [];
	await scheduler.run(Promise.all([first.stop(), second.stop()]));
	const violations = [...check.violations, ...owners.violations, ...missed];
	return {
		violations: [...violations, ...faults, ...(violations.length > 0 ? [] : left)],
		removed: check.removed,
		removedTombstones: owners.removed,
		longestMs: eventLoop?.longestMs ?? 0,
	};
}

function marked({ stored }: Origin): readonly string[] {
	return [...stored.entries()]
		.filter(([, resource]) => isMarkedForDeletion(resource))
		.map(([key]) => key);
}

async function startServer(
	origin: Origin,
	simulated: SeededRuntime,
	{
		isLeader,
		types,
		fault,
		faults,
		eventLoop,
	}: {
		readonly isLeader: boolean;
		readonly types: readonly ResourceType[];
		readonly fault?: PlantedFault;
		readonly faults: string[];
		/** That of its process; by default, each step of a call is a task of the simulation. */
		readonly eventLoop?: SeededEventLoop;
	},
): Promise<SimulatedServer> {
	const scheduler = eventLoop ? new EventLoopScheduler(eventLoop) : simulated.scheduler;
	const runtime = { ...simulated, scheduler };
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...types]);
	const registered = new Set(registry.all().map(({ key }) => key));
	const follower = followerOf(origin, simulated);
	const backend =
		fault === undefined
			? follower
			: withFault(follower, fault, { registered, random: runtime.random });
	await ensureDefaultTenancy(backend, runtime);
	const service = createResourceService({
		backend,
		registry,
		runtime,
		authorizer: insecureAllowAll,
		logger: { ...silentLogger, error: (fields) => faults.push(`fault: ${String(fields.err)}`) },
	});
	const transport = createInProcessTransport((router) => router.service(ResourceService, service), {
		...runtime,
		...(eventLoop && { router: { requestGate: eventLoop.call } }),
	});
	const client = createInProcessClient(ResourceService, transport);
	const manager = createControllerManager({
		client,
		cloningClient: createResourceServiceCloningClient(client),
		runtime,
		logger: silentLogger,
	});
	registerControllers(manager, { registry, backend, isLeader });
	const end = new AbortController();
	const ended = manager.run(end.signal);
	return {
		client,
		async stop() {
			end.abort();
			await ended;
			await follower.close();
		},
	};
}

const partitions = ["default", "p", "q"];
const namespaces = ["a", "b"];
const things = ["x", "y", "z"];

/** Takes random steps on namespaces, partitions and things, through either server. */
class User {
	readonly #clients: readonly ResourceClient[];
	readonly #runtime: SeededRuntime;
	readonly #random: Random;

	constructor(clients: readonly ResourceClient[], runtime: SeededRuntime, random: Random) {
		this.#clients = clients;
		this.#runtime = runtime;
		this.#random = random;
	}

	async act(times: number, as: "tenants" | "owners"): Promise<void> {
		const { scheduler, clock } = this.#runtime;
		for (let count = 0; count < times; count++) {
			while (this.#random.next() < 0.4) {
				await scheduler.pause();
			}
			if (this.#random.next() < 0.1) {
				await new Promise<void>((resolve) => {
					clock.setTimer(this.#random.next() * 20_000, resolve);
				});
			}
			await this.#tolerating(() => (as === "owners" ? this.#ownerStep() : this.#step()));
		}
	}

	/** Removes all finalizers of users. Retries refused writes, because servers lag behind. */
	async releaseEverything({ stored }: Origin): Promise<void> {
		const isHeld = (resource: Resource) =>
			resource.id?.type?.kind === Thing.type.kind && finalizersOf(resource).length > 0;
		for (let held = [...stored.values()].filter(isHeld); held.length > 0; ) {
			for (const { id } of held) {
				await this.#tolerating(async () => id && this.#withoutFinalizers(id));
			}
			await new Promise<void>((resolve) => {
				this.#runtime.clock.setTimer(1_000, resolve);
			});
			held = [...stored.values()].filter(isHeld);
		}
	}

	async #step(): Promise<void> {
		const client = this.#pick(this.#clients);
		const partition = this.#pick(partitions);
		const namespaceId = idOf(Namespace, this.#pick(namespaces), { partition });
		const partitionId = idOf(Partition, this.#pick(partitions.slice(1)));
		const tenancy = { partition, namespace: namespaceId.name };
		const drawn = this.#random.next();
		if (drawn < 0.2) {
			const data = create(NamespaceSchema);
			await client.write({ resource: resourceOf(Namespace, { id: namespaceId, data }) });
		} else if (drawn < 0.27) {
			const data = create(PartitionSchema);
			await client.write({ resource: resourceOf(Partition, { id: partitionId, data }) });
		} else if (drawn < 0.37) {
			await client.delete({ id: namespaceId });
		} else if (drawn < 0.4) {
			await client.delete({ id: partitionId });
		} else if (drawn < 0.5) {
			await this.#withoutFinalizers(this.#random.next() < 0.7 ? namespaceId : partitionId);
		} else if (drawn < 0.6) {
			const id = idOf(Thing, this.#pick(things), tenancy);
			await (this.#random.next() < 0.5 ? client.delete({ id }) : this.#withoutFinalizers(id));
		} else {
			const id = idOf(Thing, this.#pick(things), tenancy);
			const owner = idOf(Thing, this.#pick(things), tenancy);
			const isOwned = owner.name !== id.name && this.#random.next() < 0.3;
			const metadata = this.#random.next() < 0.2 ? { [finalizersKey]: "held" } : {};
			const data = create(ThingSchema);
			await client.write({
				resource: resourceOf(Thing, { id, data, metadata, ...(isOwned && { owner }) }),
			});
		}
	}

	/** A step on things of one namespace, most of which own each other. */
	async #ownerStep(): Promise<void> {
		const client = this.#pick(this.#clients);
		const id = idOf(Thing, this.#pick(things), {});
		const owner = idOf(Thing, this.#pick(things), {});
		const drawn = this.#random.next();
		if (drawn < 0.4) {
			await client.delete({ id });
		} else if (drawn < 0.45) {
			await this.#withoutFinalizers(id);
		} else {
			const isOwned = owner.name !== id.name && this.#random.next() < 0.8;
			const metadata = this.#random.next() < 0.1 ? { [finalizersKey]: "held" } : {};
			const data = create(ThingSchema);
			await client.write({
				resource: resourceOf(Thing, { id, data, metadata, ...(isOwned && { owner }) }),
			});
		}
	}

	async #withoutFinalizers(id: ID): Promise<void> {
		const client = this.#pick(this.#clients);
		const { resource } = await client.read({ id });
		if (resource !== undefined) {
			const metadata = { ...resource.metadata, [finalizersKey]: "" };
			await client.write({ resource: { ...resource, metadata } });
		}
	}

	/** Ignores refusals, but not internal errors. */
	async #tolerating(act: () => Promise<unknown>): Promise<void> {
		try {
			await act();
		} catch (error) {
			if (!(error instanceof ConnectError) || error.code === Code.Internal) {
				throw error;
			}
		}
	}

	#pick<T>(from: readonly T[]): T {
		return from[Math.floor(this.#random.next() * from.length)] as T;
	}
}
