/**
 * What writers of one resource cost each other, through the resource service and its in-process client: writers without
 * a version against as many on a resource each, and writers by compare-and-swap against one.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
	format,
	interleave,
	type Load,
	numberOption,
	printTable,
	quantile,
	type Row,
	runCallers,
	unlessQuick,
} from "@plinth/bench";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService, StatusSchema } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { artist, demoTypes } from "@plinth/resource-service/testing";
import { retry, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { createSqliteBackend } from "../src/index.ts";

const seconds = numberOption("seconds", 1, 0.1);

type ResourceClient = ReturnType<typeof createInProcessClient<typeof ResourceService>>;
type Write = (client: ResourceClient, name: string, writer: number) => Promise<unknown>;

const methods: Readonly<Record<string, Write>> = {
	Write: (client, name) => client.write({ resource: artist(name) }),
	WriteStatus: async (client, name, writer) => {
		const stored = artists.get(name);
		const status = create(StatusSchema, { observedGeneration: stored?.generation ?? "" });
		await client.writeStatus({
			...(stored?.id && { id: stored.id }),
			key: `writer-${writer % 16}`,
			status,
		});
	},
};
/** As created, by name. */
const artists = new Map<string, ReturnType<typeof artist>>();

function clientOf(backend: StorageBackend): ResourceClient {
	const service = createResourceService({
		backend,
		registry: new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]),
		authorizer: insecureAllowAll,
	});
	const transport = createInProcessTransport((router) => router.service(ResourceService, service));
	return createInProcessClient(ResourceService, transport);
}

/** The load of writers on so many resources, in a storage of their own. */
async function load(write: Write, writers: number, resources: number): Promise<Load> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
	try {
		const backend = await createSqliteBackend({ path: join(directory, "storage.db") });
		await ensureDefaultTenancy(backend, systemRuntime);
		const client = clientOf(backend);
		for (let at = 0; at < resources; at++) {
			const { resource } = await client.write({ resource: artist(`a${at}`) });
			if (resource !== undefined) {
				artists.set(`a${at}`, resource);
			}
		}
		const measured = await runCallers(writers, seconds, (writer) =>
			write(client, `a${writer % resources}`, writer),
		);
		await backend.close();
		return measured;
	} finally {
		await rm(directory, { recursive: true });
	}
}

/** Writes by compare-and-swap on memory, per second. A writer yields to the event loop between read and write. */
async function comparedAndSwapped(writers: number, backsOff: boolean): Promise<number> {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const client = clientOf(backend);
	const { resource: created } = await client.write({ resource: artist("a") });
	const id = created?.id;
	const policy = {
		runtime: systemRuntime,
		attempts: 1_000_000,
		isRetryable: (failure: unknown) => `${failure}`.includes("CAS operation failed"),
		// As `retryOnConflict` of @plinth/controller.
		...(backsOff ? { baseMs: 1, maxMs: 100 } : { baseMs: 0, maxMs: 0 }),
	};
	// Timers of the system clock don't keep the process alive.
	const alive = setInterval(() => {}, 1_000);
	const { perSecond } = await runCallers(writers, seconds, () =>
		retry(async () => {
			const { resource } = await client.read({ ...(id && { id }) });
			await new Promise((resolve) => setImmediate(resolve));
			await client.write({ resource: { ...artist("a"), version: resource?.version ?? "" } });
		}, policy),
	);
	clearInterval(alive);
	await backend.close();
	return perSecond;
}

for (const [method, write] of Object.entries(methods)) {
	const rows: Row[] = [];
	for (const writers of [1, 16, 64, 256]) {
		const p99: Record<string, number[]> = { hot: [], spread: [] };
		const rate = async (key: string, resources: number) => {
			const { perSecond, latenciesMs } = await load(write, writers, resources);
			p99[key]?.push(quantile(latenciesMs, 0.99));
			return perSecond;
		};
		const rates = await interleave(
			{ hot: () => rate("hot", 1), spread: () => rate("spread", writers) },
			{ rounds: unlessQuick(3, 1), warmUpRounds: unlessQuick(1, 0) },
		);
		const median = (figures: readonly number[] = []) => quantile(figures, 0.5);
		rows.push({
			writers,
			"one resource: writes/s": format(median(rates.hot)),
			"a resource each": format(median(rates.spread)),
			"rate ratio": format(median(rates.hot) / median(rates.spread)),
			"p99 ms": format(median(p99.hot)),
			"p99 ratio": format(median(p99.hot) / median(p99.spread)),
		});
	}
	printTable(`${method} without a version`, rows);
}

const rows: Row[] = [];
for (const writers of [1, 4, 16]) {
	const rates = await interleave(
		{
			"one writer": () => comparedAndSwapped(1, true),
			"with backoff": () => comparedAndSwapped(writers, true),
			"without backoff": () => comparedAndSwapped(writers, false),
		},
		{ rounds: unlessQuick(3, 1), warmUpRounds: unlessQuick(1, 0) },
	);
	const median = (name: string) => quantile(rates[name] ?? [], 0.5);
	rows.push({
		writers,
		"with backoff: writes/s": format(median("with backoff")),
		"÷ one writer": format(median("with backoff") / median("one writer")),
		"without backoff": format(median("without backoff")),
		"÷ one": format(median("without backoff") / median("one writer")),
	});
}
printTable("Compare-and-swap of one resource, on memory", rows);
