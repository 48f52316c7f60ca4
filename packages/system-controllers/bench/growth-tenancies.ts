/**
 * What the deletion of namespaces costs as they contain more resources, as there are more namespaces, and as their
 * resources have more types: in processor time and in calls of the controllers, per resource.
 */

import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { format, numberOption, otherCheckout, printTable, type Row } from "@plinth/bench";
import { createControllerManager } from "@plinth/controller";
import { createInProcessTransport } from "@plinth/in-process";
import { NamespaceSchema, ResourceService } from "@plinth/proto";
import {
	idOf,
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
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { counted } from "../src/counted-calls.fixture.ts";
import { Thing, thingType } from "../testdata/thing.ts";

const path = "packages/system-controllers/src/system.fixture.ts";
const { registerControllers }: typeof import("../src/system.fixture.ts") = await import(
	otherCheckout(path) ?? "../src/system.fixture.ts"
);

interface Contents {
	readonly namespaces: number;
	readonly types: number;
	/** In each namespace, of each type. */
	readonly resources: number;
}

/** Fills namespaces, deletes them, and waits until they are gone. */
async function deletion({ namespaces, types, resources }: Contents) {
	const runtime = systemRuntime;
	const kinds: ResourceType[] = [Thing];
	for (let number = 1; number < types; number += 1) {
		kinds.push(thingType(`Thing${number}`));
	}
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...kinds]);
	const backend = createMemoryBackend({ runtime });
	await ensureDefaultTenancy(backend, runtime);
	const service = createResourceService({
		...{ backend, registry, runtime },
		authorizer: insecureAllowAll,
	});
	const client = createClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, service), runtime),
	);
	const ids = Array.from({ length: namespaces }, (_, at) => idOf(Namespace, `n${at}`));
	for (const id of ids) {
		await client.write({ resource: resourceOf(Namespace, { id, data: create(NamespaceSchema) }) });
		for (const kind of kinds) {
			for (let number = 0; number < resources; number += 1) {
				const thing = idOf(kind, `thing-${number}`, { namespace: id.name });
				const data = create(kind.schema);
				await client.write({ resource: resourceOf(kind, { id: thing, data }) });
			}
		}
	}
	const calls = new Map<string, number>();
	const manager = createControllerManager({ client: counted(client, calls), runtime });
	registerControllers(manager, { registry, backend, isLeader: true });
	const stop = new AbortController();
	const ended = manager.run(stop.signal);
	await new Promise((resolve) => setTimeout(resolve, 500));
	calls.clear();
	const startMs = performance.now();
	const before = process.cpuUsage();
	await Promise.all(ids.map((id) => client.delete({ id })));
	while ((await backend.countByType()).get(Namespace.key) !== 1) {
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
	const seconds = (performance.now() - startMs) / 1_000;
	const { user, system } = process.cpuUsage(before);
	stop.abort();
	await ended;
	await backend.close();
	return { seconds, microseconds: user + system, calls, lists: calls.get("list") ?? 0 };
}

async function table(title: string, contents: readonly Contents[]): Promise<void> {
	const rows: Row[] = [];
	let first: number | undefined;
	for (const each of contents) {
		const { namespaces, types, resources } = each;
		const count = namespaces * types * resources;
		const { seconds, microseconds, calls, lists } = await deletion(each);
		const perResource = microseconds / count;
		rows.push({
			namespaces: namespaces.toLocaleString("en-US"),
			types: types.toLocaleString("en-US"),
			resources: count.toLocaleString("en-US"),
			"lists ÷ namespaces": format(lists / namespaces),
			"calls per resource": format(calls.values().reduce((sum, each) => sum + each, 0) / count),
			"µs per resource": format(perResource),
			"÷ the smallest": format(perResource / (first ?? perResource)),
			seconds: format(seconds),
		});
		first ??= perResource;
	}
	printTable(title, rows);
}

const smallest = numberOption("resources", 100, 10);
const steps = [1, 10, 100];
// Compiles what the others use.
await deletion({ namespaces: 2, types: 2, resources: 10 * smallest });
await table(
	"One namespace, in processor time",
	steps.map((step) => ({ namespaces: 1, types: 1, resources: step * smallest })),
);
await table(
	"Namespaces of ten resources",
	steps.map((step) => ({ namespaces: (step * smallest) / 10, types: 1, resources: 10 })),
);
await table(
	"Ten namespaces of one resource of each type",
	steps.map((step) => ({ namespaces: 10, types: (step * smallest) / 10, resources: 1 })),
);
