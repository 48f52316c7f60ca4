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
import { Thing, ThingSchema } from "../testdata/thing.ts";
import { createLocalReaper, createReaper } from "./reaper.ts";
import {
	createLocalTenancyDeletion,
	createTenancyDeletion,
	type TenancyDeletionOptions,
} from "./tenancy-deletion.ts";

/** A server in memory with the system controllers, on a clock that the test moves. */
export interface System extends AsyncDisposable {
	readonly clock: FakeClock;
	readonly client: ResourceClient;
	readonly backend: StorageBackend;
	/** What controllers have logged as errors. */
	readonly errors: string[];
	/** What they have logged as warnings. */
	readonly warnings: string[];
	/** Stops the controllers and starts them anew, as a restart of the server does. */
	restart(): Promise<void>;
	/** Moves the clock until the condition holds; fails where that takes longer than `limitMs`. */
	until(condition: () => Promise<boolean>, limitMs?: number): Promise<void>;
}

/** What a test may change about its system. */
export interface SystemOptions {
	/** The types that its modules register: things, unless it says otherwise. */
	readonly types?: readonly ResourceType[];
	/** Another server with the same storage and clock; it is to be stopped after this one. */
	readonly joins?: System;
	/** Whether it runs the controllers of the server that holds the lease; it does by default. */
	readonly leads?: boolean;
}

/** Starts it over an empty storage, or over that of another one. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
	const { types = [Thing], joins, leads = true } = options;
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
		const manager = createControllerManager({ client, runtime, logger });
		registerControllers(manager, { registry, backend: storage, leads });
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
					throw new Error(`it did not happen within ${limitMs} ms; errors: ${errors.join("\n")}`);
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

/** Registers the system controllers of a server that shares its storage, and may hold the lease. */
export function registerControllers(
	manager: ControllerManager,
	server: {
		readonly registry: TypeRegistry;
		readonly backend: StorageBackend;
		readonly leads: boolean;
	},
): void {
	const { registry, backend, leads } = server;
	const known: TenancyDeletionOptions = {
		types: () => registry.all(),
		census: (unit) => backend.countByTypeIn(unit, { consistency: "strong" }),
	};
	const controllers = [
		...(leads ? [createReaper(known), ...createTenancyDeletion(known)] : []),
		...[createLocalReaper(known), ...createLocalTenancyDeletion(known)],
	];
	for (const controller of controllers) {
		manager.register(controller);
	}
}

/** Whether there is no resource with the ID any more. */
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

/** Writes a thing, owned by another where one is given. */
export async function writeThing(
	client: ResourceClient,
	name: string,
	options: { owner?: ID; tenancy?: TenancyLike; finalizers?: string } = {},
): Promise<ID> {
	const resource = resourceOf(Thing, {
		id: idOf(Thing, name, options.tenancy),
		data: create(ThingSchema),
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
		throw new Error("the write answered no resource");
	}
	return resource.id;
}
