import type { Client, ServiceImpl } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { createResourceServiceCloningClient, ResourceService } from "@plinth/proto";
import { Namespace, Partition, type ResourceType, Tombstone, TypeRegistry } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { ResourceShadow } from "../shadow/shadow-records.ts";

/** The resource service of a server. */
export function ownService(
	store: StorageBackend,
	types: readonly ResourceType[],
	runtime: Runtime,
): ServiceImpl<typeof ResourceService> {
	const builtin = [Tombstone, Partition, Namespace, ResourceShadow];
	const others = types.filter(({ key }) => !builtin.some((each) => each.key === key));
	return createResourceService({
		backend: store,
		registry: new TypeRegistry([...builtin, ...others]),
		authorizer: insecureAllowAll,
		runtime,
	});
}

/** The resource service of a server, as its own controllers call it. */
export function ownClient(
	...[store, types, runtime]: Parameters<typeof ownService>
): Client<typeof ResourceService> {
	const service = ownService(store, types, runtime);
	const transport = createInProcessTransport(
		(router) => router.service(ResourceService, service),
		runtime,
	);
	return createInProcessClient(ResourceService, transport);
}

/** What controllers call: see `ControllerManagerOptions`. */
export function controllerClients(...server: Parameters<typeof ownClient>) {
	const client = ownClient(...server);
	return { client, cloningClient: createResourceServiceCloningClient(client) };
}
