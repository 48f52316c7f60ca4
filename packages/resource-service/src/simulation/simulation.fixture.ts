import type { Client, ConnectRouter } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	type Clock,
	type Random,
	type Runtime,
	type Scheduler,
	silentLogger,
} from "@plinth/runtime";
import { SeededScheduler, seededRandom } from "@plinth/runtime/testing";
import {
	createMemoryBackend,
	decorateBackend,
	type StorageBackend,
	type StorageLimits,
	WatchDeliveries,
} from "@plinth/storage";
import { delayedBackend } from "@plinth/storage/testing";
import { insecureAllowAll } from "../access/open-access.ts";
import { demoTypes } from "../demo.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";
import { type PlantedFault, withFault } from "./planted-faults.fixture.ts";

/** A service, its clients and its storage in one process. A seed determines their interleaving. */
export interface Simulation {
	readonly client: Client<typeof ResourceService>;
	readonly random: Random;
	readonly clock: Clock;
	readonly scheduler: SeededScheduler;
	/** The internal errors that the service has logged. There must be none. */
	readonly faults: readonly unknown[];
	/** A client without delays on another scheduler, which calls `onCall` whenever a call of it reaches the service. */
	connect(scheduler: Scheduler, onCall: () => void): Client<typeof ResourceService>;
	/** The next tick of a clock that orders what callers do and see. */
	tick(): number;
}

/** The options of a simulation. */
export interface SimulationOptions {
	readonly seed: number;
	readonly fault?: PlantedFault | undefined;
	readonly limits?: Partial<StorageLimits>;
	/** The chance that the storage does not decide a conflicting commit again, but fails it. 0.5 by default. */
	readonly failsConflicts?: number;
	/** The deliveries to watches; by default, the seed determines how many begin in a row. */
	readonly deliveries?: (runtime: Runtime) => Pick<WatchDeliveries, "add">;
}

/**
 * Creates a simulation:
 *
 * ```
 *   client ─▶ in-process transport ─▶ resource service ─▶ delays ─▶ fault ─▶ memory backend
 *                    └── each hop ──────────┬─────────────────┘                    │
 *                                    SeededScheduler ◀──── each wake-up of a watch ┘
 * ```
 */
export async function createSimulation(options: SimulationOptions): Promise<Simulation> {
	const random = seededRandom(options.seed);
	const scheduler = new SeededScheduler({ seed: options.seed });
	const { clock } = scheduler;
	const runtime = { clock, random, scheduler };
	const perIteration = 1 + (options.seed % 4);
	const memory = createMemoryBackend({
		runtime,
		limits: options.limits ?? {},
		deliveries: options.deliveries?.(runtime) ?? new WatchDeliveries(runtime, { perIteration }),
	});
	await ensureDefaultTenancy(memory, runtime);
	const { fault, failsConflicts = 0.5 } = options;
	const faulty = fault === undefined ? memory : withFault(memory, fault, random);
	const storage = decorateBackend(faulty, {
		commit: (mutations, { rebase, ...others } = {}) =>
			faulty.commit(mutations, {
				...others,
				...(rebase && random.next() >= failsConflicts && { rebase }),
			}),
	});
	const faults: unknown[] = [];
	const serviceOver = (backend: StorageBackend) =>
		createResourceService({
			backend,
			registry: new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]),
			authorizer: insecureAllowAll,
			runtime,
			logger: { ...silentLogger, error: (fields) => faults.push(fields.err) },
		});
	const service = serviceOver(delayedBackend(storage, { scheduler, random, chance: 0.4 }));
	const transport = createInProcessTransport(
		(router) => router.service(ResourceService, service),
		runtime,
	);
	let now = 0;
	return {
		client: createInProcessClient(ResourceService, transport),
		random,
		clock,
		scheduler,
		faults,
		connect(other, onCall) {
			const routes = (router: ConnectRouter) =>
				router.service(ResourceService, serviceOver(storage));
			const options = {
				clock,
				scheduler: other,
				router: { requestGate: onCall },
			};
			return createInProcessClient(ResourceService, createInProcessTransport(routes, options));
		},
		tick: () => {
			now += 1;
			return now;
		},
	};
}

/** One of several, drawn. */
export function pick<const Items extends readonly [unknown, ...unknown[]]>(
	random: Random,
	items: Items,
): Items[number] {
	return items[Math.floor(random.next() * items.length)] ?? items[0];
}
