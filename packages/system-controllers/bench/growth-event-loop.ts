/**
 * The longest pause of the event loop, and the time per resource, while an owner or a namespace of N, 10 N and 100 N
 * resources is deleted. The storage is in memory, and a controller follows the resources: nothing waits for input.
 */
import { monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { format, numberOption, printTable, type Row } from "@plinth/bench";
import { createControllerManager, defineController, type ResourceClient } from "@plinth/controller";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { createReaper, createTenancyDeletion } from "../src/index.ts";
import { writeNamespace, writeThing } from "../src/system.fixture.ts";
import { Thing } from "../testdata/thing.ts";

const smallest = numberOption("resources", 1_000, 10);
const sizes = [smallest, 10 * smallest, 100 * smallest];

/** What is deleted: creates it with its contents, and returns its deletion. */
type Deleted = (client: ResourceClient, size: number) => Promise<() => Promise<unknown>>;

const cases: Readonly<Record<string, Deleted>> = {
	owner: async (client, size) => {
		const owner = await writeThing(client, "owner");
		for (let at = 0; at < size; at++) {
			await writeThing(client, `owned-${at}`, { owner });
		}
		return () => client.delete({ id: owner });
	},
	namespace: async (client, size) => {
		const unit = await writeNamespace(client, "unit");
		const tenancy = { partition: "default", namespace: "unit" };
		for (let at = 0; at < size; at++) {
			await writeThing(client, `member-${at}`, { tenancy });
		}
		return () => client.delete({ id: idOf(Namespace, unit.name, { partition: "default" }) });
	},
};

/** The longest processor time of this thread in one iteration of the event loop: what others compute does not count. */
function computedIterations(): { stop(): number } {
	let longestMs = 0;
	let isOver = false;
	let last = process.threadCpuUsage();
	const look = () => {
		const { user, system } = process.threadCpuUsage(last);
		longestMs = Math.max(longestMs, (user + system) / 1_000);
		last = process.threadCpuUsage();
		if (!isOver) {
			setImmediate(look);
		}
	};
	setImmediate(look);
	return {
		stop() {
			isOver = true;
			return longestMs;
		},
	};
}

/** The longest pause by a garbage collection, which is in the other figures if it was in the same iteration. */
function collections(): { stop(): number } {
	let longestMs = 0;
	const observer = new PerformanceObserver((list) => {
		for (const { duration } of list.getEntries()) {
			longestMs = Math.max(longestMs, duration);
		}
	});
	observer.observe({ entryTypes: ["gc"] });
	return {
		stop() {
			observer.disconnect();
			return longestMs;
		},
	};
}

async function measure(what: Deleted, size: number): Promise<Row> {
	const backend = createMemoryBackend();
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, Thing]);
	await ensureDefaultTenancy(backend, systemRuntime);
	const service = createResourceService({ backend, registry, authorizer: insecureAllowAll });
	const client = createInProcessClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, service)),
	);
	const remove = await what(client, size);
	let failures = 0;
	const logger = { ...silentLogger, warn: () => (failures += 1), error: () => (failures += 1) };
	const manager = createControllerManager({ client, logger });
	const types = () => registry.all();
	const census = (unit: { readonly partition: string; readonly namespace?: string }) =>
		backend.countByTypeIn(unit, { consistency: "strong" });
	for (const controller of [createReaper({ types }), ...createTenancyDeletion({ types, census })]) {
		manager.register(controller);
	}
	manager.register(
		defineController({
			name: "follower",
			manages: Thing,
			resyncMs: "never",
			reconcile: async () => {},
		}),
	);
	const stop = new AbortController();
	const running = manager.run(stop.signal);
	while (manager.state().controllers.some(({ phase }) => phase !== "running")) {
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
	await new Promise((resolve) => setTimeout(resolve, 1_000));

	// Of the garbage of the measurement before.
	globalThis.gc?.();
	const delay = monitorEventLoopDelay({ resolution: 1 });
	const collected = collections();
	const computed = computedIterations();
	const before = process.cpuUsage();
	delay.enable();
	await remove();
	while (((await backend.countByType()).get(Thing.key) ?? 0) > 0) {
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
	// The last pause is recorded after it.
	await new Promise((resolve) => setTimeout(resolve, 20));
	delay.disable();
	const longestMs = computed.stop();
	const longestCollectionMs = collected.stop();
	const { user, system } = process.cpuUsage(before);
	const restarts = manager.state().controllers.reduce((sum, each) => sum + each.restarts, 0);
	stop.abort();
	await running;
	await backend.close();
	return {
		"longest pause ms": format(delay.max / 1e6),
		"computed in it ms": format(longestMs),
		"longest collection ms": format(longestCollectionMs),
		"µs per resource": format((user + system) / size),
		"failures of controllers": `${failures + restarts}`,
	};
}

for (const [name, what] of Object.entries(cases)) {
	const rows: Row[] = [];
	// Compiles what the others use.
	await measure(what, smallest);
	for (const size of sizes) {
		rows.push({ resources: size.toLocaleString("en"), ...(await measure(what, size)) });
	}
	printTable(`Deletion of a ${name}`, rows);
}
