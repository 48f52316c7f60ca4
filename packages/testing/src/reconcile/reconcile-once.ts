import { createCache } from "@plinth/cache";
import type { Controller, Requeue } from "@plinth/controller";
import { cachedTypes, callReconcile } from "@plinth/controller/testing";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	createResourceServiceCloningClient,
	type ID,
	type Resource,
	ResourceService,
} from "@plinth/proto";
import {
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

/** What one reconcile is called with. */
export interface ReconcileOnceOptions {
	/** What to reconcile. It need not be among the resources: then it has been deleted. */
	readonly id: ID;
	/** What is stored and, as far as the controller caches its type, cached. Statuses are kept. */
	readonly resources?: readonly Resource[];
	/** The types that it reads or writes and doesn't cache. */
	readonly types?: readonly ResourceType[];
	/** Decides what little is left to chance; 1 by default. */
	readonly seed?: number;
}

/** What came of one reconcile. */
export interface ReconcileOutcome {
	/** What it returned. */
	readonly requeue: Requeue | undefined;
	/** What it changed, in order; tombstones aside. */
	readonly changes: readonly StoredChange[];
	readonly log: TestLog;
}

/**
 * Calls the reconciler of a controller once, with a cache and a storage that hold the given resources
 * and nothing else. Its client reaches a resource service, with all of its rules; time passes as it is
 * waited for.
 *
 * @throws what the reconciler throws.
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
		const tenancy = { partition: "*", namespace: "*" };
		const { resources: stored } = await backend.list({ type: type.type, tenancy, namePrefix: "" });
		for (const resource of stored) {
			cache.insert(resource);
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
	const call = callReconcile(controller, { id, cache, client, runtime, logger: log });
	const requeue = await runtime.scheduler.run(call);
	return { requeue, changes, log };
}
