import { createCache } from "@plinth/cache";
import type { Controller, Requeue } from "@plinth/controller";
import { cachedRegions, cachedTypes, callReconcile, isCached } from "@plinth/controller/testing";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	createResourceServiceCloningClient,
	type ID,
	type Resource,
	ResourceService,
} from "@plinth/proto";
import {
	type EventRecord,
	familyKey,
	Namespace,
	Partition,
	type ResourceType,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { seededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { recordedBackend, type StoredChange } from "@plinth/storage/testing";
import { TestLog } from "../server/log.ts";
import { storeResources } from "./stored-resources.ts";

/** The options of one reconcile. */
export interface ReconcileOnceOptions {
	/** The resource to reconcile. If it is not among `resources`, it has been deleted. */
	readonly id: ID;
	/** The stored resources, also copies; also cached if the controller caches their type and region. Statuses are kept. */
	readonly resources?: readonly Resource[];
	/** The types that it reads or writes without caching them. */
	readonly types?: readonly ResourceType[];
	/** The seed of the few random decisions; 1 by default. */
	readonly seed?: number;
}

/** The outcome of one reconcile. */
export interface ReconcileOutcome {
	/** The return value. */
	readonly requeue: Requeue | undefined;
	/** Its changes in order, without tombstones. */
	readonly changes: readonly StoredChange[];
	/** What it has told of resources, in order. */
	readonly events: readonly EventRecord[];
	readonly log: TestLog;
}

/**
 * Calls the reconciler of a controller once, with a cache and a storage that contain exactly the given
 * resources. Its client calls a real resource service, with all of its rules; the clock advances when the
 * reconciler waits.
 *
 * @throws the error of the reconciler.
 */
export async function reconcileOnce(
	controller: Controller,
	options: ReconcileOnceOptions,
): Promise<ReconcileOutcome> {
	const { id, resources = [], types = [], seed = 1 } = options;
	const runtime = seededRuntime({ seed });
	const log = new TestLog();
	const changes: StoredChange[] = [];
	let isReady = false;
	const backend = recordedBackend(createMemoryBackend({ runtime }), (change) => {
		const type = change.kind === "put" ? change.resource.id?.type : change.id.type;
		if (isReady && type !== undefined && familyKey(type) !== Tombstone.family) {
			changes.push(change);
		}
	});
	await ensureDefaultTenancy(backend, runtime);
	await storeResources(backend, resources, runtime);
	isReady = true;

	const cached = cachedTypes(controller);
	const { indexes, queries } = controller;
	const cache = createCache({ types: cached, indexes, queries });
	for (const type of cached) {
		const regions = cachedRegions(controller, type);
		const { resources: stored } = await backend.list({
			...{ type: type.type, namePrefix: "", region: "*" },
			tenancy: { partition: "*", namespace: "*" },
		});
		for (const resource of stored) {
			if (isCached(regions, resource)) {
				cache.insert(resource);
			}
		}
	}
	const builtIn = [Partition, Namespace, Tombstone];
	const service = createResourceService({
		backend,
		registry: new TypeRegistry(new Set([...builtIn, ...cached, ...types])),
		authorizer: insecureAllowAll,
		runtime,
		logger: log,
	});
	const transport = createInProcessTransport(
		(router) => router.service(ResourceService, service),
		runtime,
	);
	const client = createResourceServiceCloningClient(
		createInProcessClient(ResourceService, transport),
	);
	const events: EventRecord[] = [];
	const recorder = { record: (event: EventRecord) => void events.push(event) };
	const call = callReconcile(controller, {
		...{ id, cache, client, runtime, logger: log },
		events: recorder,
	});
	const requeue = await runtime.scheduler.run(call);
	return { requeue, changes, events, log };
}
