import { setImmediate } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { type PlantedFault, plantedFaults, withFault } from "./clients/faulty-client.ts";
import type { ResourceClient } from "./clients/life.ts";
import { textOf } from "./clients/perform.ts";
import { noProblems, type Problems, problemsOf } from "./history/problems.ts";
import type { RegisterChange, StorageRecord } from "./history/storage-record.ts";
import { Register } from "./module/types.ts";
import { runClients } from "./run.ts";

const mostRuns = 100;
const operationsPerRun = 400;

/** A short run over a storage in memory: the clients and the checks are those of the real one. */
async function problemsOfRun(seed: number, fault?: PlantedFault): Promise<Problems> {
	const random = seededRandom(seed);
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const service = createResourceService({
		backend,
		registry: new TypeRegistry([Partition, Namespace, Tombstone, Register]),
		authorizer: insecureAllowAll,
	});
	const transport = createInProcessTransport((router) => router.service(ResourceService, service));
	const client: ResourceClient = createClient(ResourceService, transport);
	const recording = new AbortController();
	const recorded = recordOf(backend, recording.signal);
	const seen = fault === undefined ? client : withFault(client, fault, random);
	const targets = [1, 2].map((number) => ({ life: async () => ({ number, client: seen }) }));
	const { history } = await runClients({
		targets,
		random,
		settleMs: 20,
		async pause() {
			do {
				await setImmediate();
			} while (random.next() < 0.5);
		},
		async meanwhile({ operations }) {
			while (operations.length < operationsPerRun) {
				await setImmediate();
			}
		},
	});
	recording.abort();
	const registers = await recorded;
	await backend.close();
	const record: StorageRecord = { registers, leases: [], effects: [] };
	return problemsOf(history, record);
}

/** All changes of registers, from a watch on the storage. */
async function recordOf(backend: StorageBackend, signal: AbortSignal): Promise<RegisterChange[]> {
	const changes: RegisterChange[] = [];
	const tenancy = { partition: "*", namespace: "*" };
	const query = { type: Register.type, tenancy, namePrefix: "" };
	try {
		for await (const event of backend.watchList(query, { signal })) {
			if (event.kind !== "upsert" && event.kind !== "delete") {
				continue;
			}
			const revision = Number(event.version);
			const register = event.resource.id?.name ?? "";
			const text = event.kind === "upsert" ? { text: textOf(event.resource) } : {};
			changes.push({ revision, register, ...text });
		}
	} catch (error) {
		if (!signal.aborted) {
			throw error;
		}
	}
	return changes;
}

/** The check that each fault is for. */
const findsIt: Readonly<Record<PlantedFault, keyof Problems>> = {
	"dropped event": "watches",
	"doubled event": "watches",
	"swapped events": "watches",
	"stale strong read": "linearizable",
	"stale eventual read": "monotonic",
	"lost write": "writes",
	"conflict that was none": "writes",
};

describe("the checks of histories", () => {
	it("find nothing in a correct run", async () => {
		for (let seed = 1; seed <= 10; seed += 1) {
			expect(await problemsOfRun(seed)).toEqual(noProblems);
		}
	});

	it.each(plantedFaults)(`find a %s within ${mostRuns} runs`, async (fault) => {
		for (let seed = 1; seed <= mostRuns; seed += 1) {
			const problems = await problemsOfRun(seed, fault);
			if (problems[findsIt[fault]].length > 0) {
				return;
			}
		}
		expect.fail(`${mostRuns} runs with a ${fault} went unnoticed`);
	});
});
