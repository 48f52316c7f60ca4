import { createClient, type ServiceImpl } from "@connectrpc/connect";
import { createControllerManager, defineController, mapOwner, watch } from "@plinth/controller";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService, type WatchListRequest } from "@plinth/proto";
import { idOf, Namespace, Partition, resourceOf, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it } from "vitest";

it("runs no mapper and no reconciler before the last of the N+1 priming watches has ended, and drops resources deleted in between", async () => {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const service = createResourceService({
		backend,
		registry: new TypeRegistry([Partition, Namespace, Tombstone]),
		authorizer: insecureAllowAll,
	});
	const transportOf = (implementation: ServiceImpl<typeof ResourceService>) =>
		createInProcessTransport((router) => router.service(ResourceService, implementation));
	const client = createClient(ResourceService, transportOf(service));
	// Stored as deletions do it; the API does not accept tombstones.
	const doomed = idOf(Tombstone, "doomed", {}, "uid-of-doomed");
	const tombstone = resourceOf(Tombstone, { id: doomed });
	await backend.commit([{ op: "put", resource: tombstone, expectedVersion: "" }]);

	// Priming watches have no version to resume after. The one of namespaces is held at its end.
	const log: string[] = [];
	const held = Promise.withResolvers<void>();
	const othersPrimed = Promise.withResolvers<void>();
	let open = 0;
	async function* slowed<Event extends { readonly event?: { readonly case?: unknown } }>(
		request: WatchListRequest,
		events: AsyncIterable<Event>,
	): AsyncGenerator<Event> {
		for await (const event of events) {
			if (event.event?.case === "endOfSnapshot" && request.afterVersion === "") {
				if (request.type?.kind === "Namespace") {
					await held.promise;
				}
				log.push(`primed ${request.type?.kind}`);
				open += 1;
				if (open === 2) {
					othersPrimed.resolve();
				}
			}
			yield event;
		}
	}
	const slowClient = createClient(
		ResourceService,
		transportOf({
			...service,
			watchList: (request, call) => slowed(request, service.watchList(request, call)),
		}),
	);

	const done = Promise.withResolvers<void>();
	const seen: (string | undefined)[] = [];
	const manager = createControllerManager({ client: slowClient });
	manager.register(
		defineController({
			name: "slowly-primed",
			manages: Partition,
			watches: [
				watch(Namespace, {
					map: () => {
						log.push("mapped");
						return [];
					},
				}),
				watch(Tombstone, { map: mapOwner }),
			],
			async reconcile({ cache }) {
				log.push("reconciled");
				seen.push(...cache.list(Tombstone).map(({ resource }) => resource.id?.name));
				done.resolve();
			},
		}),
	);
	const stop = new AbortController();
	const ended = manager.run(stop.signal);

	await othersPrimed.promise;
	expect(log).toEqual(["primed Partition", "primed Tombstone"]);
	// Between the snapshot of this type and the run: the run must receive it nevertheless.
	await client.delete({ id: doomed });
	expect(log).toHaveLength(2);
	held.resolve();
	await done.promise;
	expect(log.slice(0, 3)).toEqual(["primed Partition", "primed Tombstone", "primed Namespace"]);
	await expect
		.poll(() => {
			const run = manager.state().controllers[0]?.run;
			return run?.cached.find(({ type }) => type === Tombstone.key)?.size;
		})
		.toBe(0);

	stop.abort();
	await ended;
	await backend.close();
});
