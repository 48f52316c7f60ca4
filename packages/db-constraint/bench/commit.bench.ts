/**
 * What the constraints cost a commit, on the storage in memory, against the bare storage:
 * `node bench/commit.bench.ts`.
 */
import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { idOf, newUlid, Partition, referenceTo, resourceOf } from "@plinth/resource";
import { ensureDefaultTenancy, removal } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { createConstraints, localEnvironment, ServiceDescriptor } from "../src/index.ts";
import { Thing, ThingSchema } from "../testdata/types.ts";

const count = 5_000;
const rounds = 5;

interface Case {
	readonly name: string;
	/** Answers what is to be timed, for the i-th resource. */
	prepare(store: StorageBackend): Promise<(i: number) => Promise<unknown>>;
}

const fresh = (resource: Resource): Resource => ({
	...resource,
	generation: newUlid(systemRuntime),
	id: { ...resource.id!, uid: newUlid(systemRuntime) },
});

const thing = (name: string, needs?: string): Resource =>
	fresh(
		resourceOf(Thing, {
			id: idOf(Thing, name),
			data: create(ThingSchema, needs ? { needs: referenceTo({ name: needs }) } : { note: name }),
		}),
	);

async function put(store: StorageBackend, resource: Resource): Promise<Resource> {
	const { resources } = await store.commit([
		{ op: "put", resource, expectedVersion: resource.version },
	]);
	return resources[0] ?? resource;
}

const cases: readonly Case[] = [
	{
		name: "create, a type without references",
		prepare: async (store) => (i) =>
			put(store, fresh(resourceOf(Partition, { id: idOf(Partition, `p-${i}`) }))),
	},
	{
		name: "create, no reference set",
		prepare: async (store) => (i) => put(store, thing(`t-${i}`)),
	},
	{
		name: "create, referencing one of 100",
		async prepare(store) {
			for (let i = 0; i < 100; i++) {
				await put(store, thing(`target-${i}`));
			}
			return (i) => put(store, thing(`t-${i}`, `target-${i % 100}`));
		},
	},
	{
		name: "replace, the reference unchanged",
		async prepare(store) {
			await put(store, thing("target"));
			const stored: Resource[] = [];
			for (let i = 0; i < count; i++) {
				stored.push(await put(store, thing(`t-${i}`, "target")));
			}
			return async (i) => put(store, stored[i]!);
		},
	},
	{
		name: "delete, never referenced",
		async prepare(store) {
			const stored: Resource[] = [];
			for (let i = 0; i < count; i++) {
				stored.push(await put(store, thing(`t-${i}`)));
			}
			return (i) => store.commit(removal(systemRuntime, stored[i]!));
		},
	},
	{
		name: "delete, referenced once and no more",
		async prepare(store) {
			const stored: Resource[] = [];
			for (let i = 0; i < count; i++) {
				stored.push(await put(store, thing(`t-${i}`)));
				const user = await put(store, thing(`user-${i}`, `t-${i}`));
				await store.commit(removal(systemRuntime, user));
			}
			return (i) => store.commit(removal(systemRuntime, stored[i]!));
		},
	},
];

async function measure(made: StorageBackend, { prepare }: Case): Promise<number> {
	const run = await prepare(made);
	const start = performance.now();
	for (let i = 0; i < count; i++) {
		await run(i);
	}
	return ((performance.now() - start) * 1000) / count;
}

async function bare(each: Case): Promise<number> {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	return measure(backend, each);
}

async function constrained(each: Case): Promise<number> {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const constraints = createConstraints({
		backend,
		descriptor: new ServiceDescriptor({ types: [Partition, Thing], service: "alpha" }),
		environment: localEnvironment("bench", "alpha"),
	});
	await constraints.schemaPass.begin();
	await constraints.schemaPass.complete(new AbortController().signal);
	const stop = new AbortController();
	const running = constraints.run(stop.signal);
	const us = await measure(constraints.store, each);
	stop.abort();
	await running;
	return us;
}

const rows = [];
for (const each of cases) {
	const best = { bare: Number.POSITIVE_INFINITY, constrained: Number.POSITIVE_INFINITY };
	for (let round = 0; round < rounds; round++) {
		best.bare = Math.min(best.bare, await bare(each));
		best.constrained = Math.min(best.constrained, await constrained(each));
	}
	rows.push({
		commit: each.name,
		"bare storage µs": best.bare.toFixed(1),
		"with constraints µs": best.constrained.toFixed(1),
		ratio: (best.constrained / best.bare).toFixed(1),
	});
}
console.table(rows);
