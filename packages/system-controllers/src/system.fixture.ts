import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
	type ControllerManager,
	createControllerManager,
	type ResourceClient,
} from "@plinth/controller";
import { createInProcessTransport } from "@plinth/in-process";
import {
	type ID,
	NamespaceSchema,
	PartitionSchema,
	type Resource,
	ResourceService,
} from "@plinth/proto";
import {
	finalizersKey,
	idOf,
	Namespace,
	Partition,
	type ResourceType,
	resourceOf,
	type TenancyLike,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { type Logger, type Runtime, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { Thing } from "../testdata/thing.ts";
import { counted } from "./counted-calls.fixture.ts";
import { createLocalReaper, createReaper } from "./owner-deletion.ts";
import {
	createLocalTenancyDeletion,
	createTenancyDeletion,
	type TenancyDeletionOptions,
} from "./tenancy-deletion.ts";

/** An in-memory server with the system controllers, on a clock that the test advances. */
export interface System extends AsyncDisposable {
	readonly clock: FakeClock;
	readonly client: ResourceClient;
	readonly backend: StorageBackend;
	/** The calls of the controllers, by method. */
	readonly calls: Map<string, number>;
	/** The errors that controllers have logged. */
	readonly errors: string[];
	/** The warnings that controllers have logged. */
	readonly warnings: string[];
	/** Restarts the controllers, like a restart of the server. */
	restart(): Promise<void>;
	/** Advances the clock until the condition holds. Fails after `limitMs`. */
	until(condition: () => Promise<boolean>, limitMs?: number): Promise<void>;
}

/** Options of a system. */
export interface SystemOptions {
	/** The types that its modules register. Default: things. */
	readonly types?: readonly ResourceType[];
	/** Another server that shares its storage and clock, and must be stopped after this one. */
	readonly joins?: System;
	/** Whether it holds the lease and runs the singleton controllers. Default: true. */
	readonly isLeader?: boolean;
}

/** Starts a system over an empty storage, or that of another system. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
	const { types = [Thing], joins, isLeader = true } = options;
	const clock = joins?.clock ?? new FakeClock();
	const runtime: Runtime = { ...systemRuntime, clock };
	const storage = joins?.backend ?? createMemoryBackend({ runtime });
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...types]);
	await ensureDefaultTenancy(storage, runtime);
	const service = createResourceService({
		backend: storage,
		registry,
		runtime,
		authorizer: insecureAllowAll,
	});
	const client = createClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, service), runtime),
	);
	const calls = new Map<string, number>();
	const errors: string[] = [];
	const warnings: string[] = [];
	const logger: Logger = {
		debug: () => {},
		info: () => {},
		warn: (fields, message) => warnings.push(`${message} ${String(fields.err ?? "")}`),
		error: (fields, message) => errors.push(`${message} ${String(fields.err ?? "")}`),
	};
	const start = () => {
		const stop = new AbortController();
		const manager = createControllerManager({ client: counted(client, calls), runtime, logger });
		registerControllers(manager, { registry, backend: storage, isLeader });
		return { stop, ended: manager.run(stop.signal) };
	};
	let running = start();
	const stop = async () => {
		running.stop.abort();
		await running.ended;
	};
	return {
		clock,
		client,
		backend: storage,
		calls,
		errors,
		warnings,
		async restart() {
			await stop();
			running = start();
		},
		async until(condition, limitMs = 10 * 60_000) {
			for (let passedMs = 0; ; passedMs += 250) {
				if (await condition()) {
					return;
				}
				if (passedMs >= limitMs) {
					throw new Error(
						`the condition did not hold within ${limitMs} ms; errors: ${errors.join("\n")}`,
					);
				}
				await clock.advanceAsync(250);
			}
		},
		async [Symbol.asyncDispose]() {
			await stop();
			if (joins === undefined) {
				await storage.close();
			}
		},
	};
}

/** Registers the system controllers of a server. */
export function registerControllers(
	manager: ControllerManager,
	server: {
		readonly registry: TypeRegistry;
		readonly backend: StorageBackend;
		readonly isLeader: boolean;
	},
): void {
	const { registry, backend, isLeader } = server;
	const known: TenancyDeletionOptions = {
		types: () => registry.all(),
		census: (unit) => backend.countByTypeIn(unit, { consistency: "strong" }),
	};
	const controllers = [
		...(isLeader ? [createReaper(known), ...createTenancyDeletion(known)] : []),
		...[createLocalReaper(known), ...createLocalTenancyDeletion(known)],
	];
	for (const controller of controllers) {
		manager.register(controller);
	}
}

/** Whether the resource no longer exists. */
export async function isGone(client: ResourceClient, id: ID): Promise<boolean> {
	try {
		await client.read({ id });
		return false;
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.NotFound) {
			return true;
		}
		throw error;
	}
}

/** Writes a thing, with an owner if given. */
export async function writeThing(
	client: ResourceClient,
	name: string,
	options: { owner?: ID; tenancy?: TenancyLike; finalizers?: string; type?: ResourceType } = {},
): Promise<ID> {
	const { type = Thing } = options;
	const resource = resourceOf(type, {
		id: idOf(type, name, options.tenancy),
		data: create(type.schema),
		...(options.owner && { owner: options.owner }),
		...(options.finalizers && { metadata: { [finalizersKey]: options.finalizers } }),
	});
	return idIn((await client.write({ resource })).resource);
}

/** Creates a namespace. */
export async function writeNamespace(
	client: ResourceClient,
	name: string,
	partition = "default",
): Promise<ID> {
	const id = idOf(Namespace, name, { partition });
	const resource = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
	return idIn((await client.write({ resource })).resource);
}

/** Creates a partition. */
export async function writePartition(client: ResourceClient, name: string): Promise<ID> {
	const resource = resourceOf(Partition, {
		id: idOf(Partition, name),
		data: create(PartitionSchema),
	});
	return idIn((await client.write({ resource })).resource);
}

/** All resources of a type. */
export async function all(
	client: ResourceClient,
	type: ResourceType,
): Promise<readonly Resource[]> {
	const everywhere = { partition: "*", namespace: "*" };
	const found: Resource[] = [];
	let pageToken = "";
	do {
		const page = await client.list({
			type: type.type,
			tenancy: everywhere,
			pageSize: 1000,
			pageToken,
		});
		found.push(...page.resources);
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
	return found;
}

function idIn(resource: Resource | undefined): ID {
	if (resource?.id === undefined) {
		throw new Error("the write returned no resource");
	}
	return resource.id;
}
