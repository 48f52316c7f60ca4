import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { createResourceServiceCloningClient, ResourceService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { LocalLeases } from "@plinth/runtime";
import { seededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { delayedBackend } from "@plinth/storage/testing";
import { ClientFaults } from "../faults/client-faults.ts";
import { faultyClient } from "../faults/faulty-client.ts";
import type { Cluster } from "./cluster.ts";
import { runControllers } from "./controller-run.ts";
import { TestLog } from "./log.ts";
import type { TestServerOptions } from "./options.ts";
import { TestServer } from "./test-server.ts";

/**
 * Starts an in-memory server with its controllers:
 *
 * ```
 *   test ─▶ driven client ─┐
 *                          ├─▶ in-process transport ─▶ resource service ─▶ delays ─▶ memory backend
 *   controllers ─▶ faults ─┘          └── each hop ─────────┬────────────────┘            │
 *        └── each queue ────────────────────────────▶ SeededScheduler ◀── each watch ─────┘
 * ```
 *
 * @throws Error if a controller or a type is invalid.
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
	const { types = [], controllers = [], storageDelays = 0 } = options;
	const cluster = options.joins?.cluster ?? (await createCluster(options));
	const leases = options.leases ?? cluster.leases;
	const clock = options.clock ?? cluster.runtime.clock;
	const scheduler = options.scheduler ?? cluster.runtime.scheduler;
	const runtime = { ...cluster.runtime, clock, scheduler };
	const log = new TestLog();
	const logger = options.logger ?? log;
	const service = createResourceService({
		backend:
			storageDelays === 0
				? cluster.backend
				: delayedBackend(cluster.backend, { ...cluster.runtime, chance: storageDelays }),
		registry: new TypeRegistry(new Set([Partition, Namespace, Tombstone, ...types])),
		authorizer: insecureAllowAll,
		runtime,
		logger,
	});
	const transport = createInProcessTransport(
		(router) => router.service(ResourceService, service),
		runtime,
	);
	const direct = createInProcessClient(ResourceService, transport);
	const faults = new ClientFaults();
	const faulty = faultyClient(direct, faults);
	const { wrapWatching = (client) => client, wrapWriting = (client) => client } = options;
	const server = new TestServer({
		cluster,
		clock,
		leases,
		log,
		faults,
		backgroundClient: createResourceServiceCloningClient(direct),
		startControllers: () =>
			runControllers(controllers, {
				client: wrapWatching(faulty),
				cloningClient: createResourceServiceCloningClient(wrapWriting(faulty)),
				runtime,
				leases,
				logger,
				...(options.limits && { limits: options.limits }),
			}),
	});
	server.startControllers();
	await server.settle();
	return server;
}

async function createCluster(options: TestServerOptions): Promise<Cluster> {
	const { seed = 1, decorateBackend = (backend) => backend } = options;
	const runtime = options.runtime ?? seededRuntime({ seed });
	const leases = options.leases ?? new LocalLeases();
	const backend = decorateBackend(createMemoryBackend({ runtime, leases }));
	await ensureDefaultTenancy(backend, runtime);
	return { runtime, backend, leases, servers: new Set() };
}
