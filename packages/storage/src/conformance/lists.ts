import assert from "node:assert/strict";
import { typeOf } from "@plinth/resource";
import { matches } from "../query.ts";
import type { Behavior, Harness } from "./behavior.ts";
import {
	albumType,
	artistType,
	describeState,
	idOf,
	names,
	query,
	resource,
	store,
} from "./test-resources.ts";

/** Units and names that differ by what a separator sorts before or after. */
const units = ["a", "a-b", "a0", "b"];
const resourceNames = ["a", "a-", "a-b", "a.b", "a0", "ab", "b"];
const typesThatLookAlike = [
	albumType,
	typeOf({ ...artistType, kind: "Artists" }),
	typeOf({ ...artistType, group: "demo2" }),
];

/** All combinations of exact units, wildcards and prefixes. */
export const allQueries = ["*", ...units, "none"].flatMap((partition) =>
	["*", ...units, "none"].flatMap((namespace) =>
		["", "a", "a-", "b", "none"].map((prefix) => query({ partition, namespace, prefix })),
	),
);

/** Fills a storage with resources of all combinations of units and names. */
export async function fill({ backend }: Pick<Harness, "backend">): Promise<void> {
	const writes: Promise<unknown>[] = [];
	for (const partition of units) {
		for (const namespace of units) {
			for (const name of resourceNames) {
				writes.push(store(backend, resource(name, { partition, namespace })));
			}
		}
	}
	for (const type of typesThatLookAlike) {
		writes.push(store(backend, resource("a", { type, partition: "a", namespace: "a" })));
	}
	await Promise.all(writes);
}

export const listBehaviors: readonly Behavior[] = [
	{
		name: "lists nothing if there is nothing, at a version",
		async run({ backend }) {
			const { resources, version } = await backend.list(query());
			assert.deepEqual(resources, []);
			assert.match(version, /^\d+$/);
		},
	},
	{
		name: "lists by every combination of units, wildcards and name prefix",
		async run(harness) {
			await fill(harness);
			const { resources: all } = await harness.backend.list(query());
			assert.equal(all.length, units.length ** 2 * resourceNames.length);
			for (const each of allQueries) {
				const { resources } = await harness.backend.list(each);
				const expected = all.filter((candidate) => matches(each, candidate));
				assert.deepEqual(describeState(resources), describeState(expected));
			}
		},
	},
	{
		name: "orders by partition, then namespace, then name",
		async run(harness) {
			await fill(harness);
			for (const each of allQueries) {
				const { resources } = await harness.backend.list(each);
				const keys = resources.map((stored) => {
					const { tenancy, name } = idOf(stored);
					return `${tenancy?.partition}\0${tenancy?.namespace}\0${name}`;
				});
				assert.deepEqual(keys, [...keys].sort());
			}
		},
	},
	{
		name: "lists only the requested family, in all of its group versions",
		async run(harness) {
			const { backend } = harness;
			await fill(harness);
			for (const type of typesThatLookAlike) {
				assert.deepEqual(await names(backend, query({ type })), ["a"]);
			}
			const v1 = typeOf({ ...artistType, groupVersion: "v1" });
			await store(backend, resource("zoot", { type: v1 }));
			assert.deepEqual(await names(backend, query({ prefix: "zoot" })), ["zoot"]);
		},
	},
	{
		name: "lists units that a scope lacks by the empty unit and by the wildcard",
		async run({ backend }) {
			await store(backend, resource("cluster", { partition: "", namespace: "" }));
			await store(backend, resource("partition", { partition: "p", namespace: "" }));
			const listed = (partition: string, namespace: string) =>
				names(backend, query({ partition, namespace }));
			assert.deepEqual(await listed("", ""), ["cluster"]);
			assert.deepEqual(await listed("p", ""), ["partition"]);
			assert.deepEqual(await listed("p", "*"), ["partition"]);
			assert.deepEqual(await listed("*", ""), ["cluster", "partition"]);
			assert.deepEqual(await listed("*", "*"), ["cluster", "partition"]);
		},
	},
	{
		name: "lists at the version of the newest commit, the very objects that were committed",
		async run({ backend }) {
			const a = await store(backend, resource("a"));
			const b = await store(backend, resource("b"));
			for (const consistency of ["eventual", "strong"] as const) {
				const { resources, version } = await backend.list(query(), { consistency });
				assert.equal(version, b.version);
				assert.equal(resources[0], a);
				assert.equal(resources[1], b);
			}
		},
	},
];
