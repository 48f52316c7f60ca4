import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createControllerManager, defineController, readOnly, watch } from "@plinth/controller";
import { createInProcessTransport } from "@plinth/in-process";
import { NamespaceSchema, type Resource, ResourceService } from "@plinth/proto";
import { idOf, Namespace, Partition, resourceOf, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it } from "vitest";

const id = idOf(Namespace, "music");

it("shares one object between store, event and all caches, and gives reconcilers deep copies", async () => {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const service = createResourceService({
		backend,
		registry: new TypeRegistry([Partition, Namespace, Tombstone]),
		authorizer: insecureAllowAll,
	});
	const client = createClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, service)),
	);

	// A read-only mapper receives the objects of its controller's cache.
	const cached = new Map<string, Resource>();
	const reconciled = Promise.withResolvers<Resource>();
	const controllerOf = (name: string) =>
		defineController({
			name,
			manages: Partition,
			watches: [
				watch(Namespace, {
					map: readOnly((_, { resource }) => {
						if (resource.id?.name === id.name) {
							cached.set(name, resource);
						}
						return [];
					}),
				}),
			],
			async reconcile() {},
		});
	const manager = createControllerManager({ client });
	manager.register(controllerOf("first"));
	manager.register(controllerOf("second"));
	manager.register(
		defineController({
			name: "reconciling",
			manages: Namespace,
			async reconcile(context, request) {
				const item = context.cache.get(Namespace, request.id);
				if (item?.resource.id?.name === id.name) {
					reconciled.resolve(item.resource);
				}
			},
		}),
	);
	const stop = new AbortController();
	const ended = manager.run(stop.signal);

	const events = backend.watchList(
		{ type: Namespace.type, tenancy: { partition: "*", namespace: "*" }, namePrefix: id.name },
		{ signal: stop.signal },
	);
	const announced = (async () => {
		for await (const event of events) {
			if (event.kind === "upsert") {
				return event.resource;
			}
		}
		throw new Error("the watch ended");
	})();
	await client.write({
		resource: resourceOf(Namespace, { id, data: create(NamespaceSchema, { description: "d" }) }),
	});

	const stored = await backend.read(id);
	expect(await announced).toBe(stored);
	const given = await reconciled.promise;
	expect(cached.get("first")).toBe(stored);
	expect(cached.get("second")).toBe(stored);

	expect(given).toEqual(stored);
	const shared = objectsIn(stored);
	expect([...objectsIn(given)].filter((part) => shared.has(part))).toEqual([]);
	expect([...shared].every((part) => ArrayBuffer.isView(part) || Object.isFrozen(part))).toBe(true);
	expect([...objectsIn(given)].some((part) => Object.isFrozen(part))).toBe(false);

	stop.abort();
	await ended;
	await backend.close();
});

/** An object and all objects that can be reached from it. */
function objectsIn(value: object, found = new Set<object>()): Set<object> {
	if (!found.has(value)) {
		found.add(value);
		if (!ArrayBuffer.isView(value)) {
			for (const part of Object.values(value)) {
				if (typeof part === "object" && part !== null) {
					objectsIn(part, found);
				}
			}
		}
	}
	return found;
}
