import assert from "node:assert/strict";
import { CasFailure } from "../errors.ts";
import { matches } from "../query.ts";
import type { Behavior, Harness } from "./behavior.ts";
import {
	describeEvent,
	describeState,
	idFor,
	idOf,
	put,
	query,
	remove,
	resource,
	store,
	textOf,
	WatchReader,
} from "./test-resources.ts";

const regions = [undefined, "us", "us-2", "eu"];
const partitions = ["a", "a-b", "z"];
const namespaces = ["", "n", "n-o"];
const resourceNames = ["a", "a-b", "b"];

/** Stores resources with copies of other regions of the same names, and copies of other clusters in a partition. */
async function fill({ backend }: Pick<Harness, "backend">): Promise<void> {
	const mutations = partitions.flatMap((partition) =>
		namespaces.flatMap((namespace) =>
			resourceNames.flatMap((name) => [
				...regions.map((region) => put(resource(name, { partition, namespace, region }))),
				put(resource(name, { partition: `${partition}-west`, namespace, isImported: true })),
			]),
		),
	);
	while (mutations.length > 0) {
		await backend.commit(mutations.splice(0, 40));
	}
}

export const copyBehaviors: readonly Behavior[] = [
	{
		name: "are resources of their own, beside one of the same name",
		async run({ backend }) {
			const local = await store(backend, resource("a", { text: "local" }));
			const copy = await store(backend, resource("a", { region: "us", text: "copy" }));
			await assert.rejects(store(backend, resource("a", { region: "us" })), CasFailure);
			for (const consistency of ["eventual", "strong"] as const) {
				assert.equal(await backend.lookup(idOf(local), { consistency }), local);
				assert.equal(await backend.lookup(idOf(copy), { consistency }), copy);
				assert.equal(await backend.read(idFor("a", { region: "us" }), { consistency }), copy);
				assert.equal(await backend.lookup(idFor("a", { region: "eu" })), undefined);
			}
			const changed = await store(
				backend,
				resource("a", { region: "us", text: "changed" }),
				copy.version,
			);
			assert.equal(textOf(await backend.lookup(idOf(local))), "local");
			await backend.commit([remove(local)]);
			assert.equal(await backend.lookup(idOf(local)), undefined);
			assert.equal(await backend.lookup(idOf(changed)), changed);
		},
	},
	{
		name: "are selected by region with every combination of units, wildcards and name prefix",
		async run(harness) {
			await fill(harness);
			const { backend } = harness;
			const { resources: all } = await backend.list(query({ region: "*" }));
			assert.equal(all.length, 5 * partitions.length * namespaces.length * resourceNames.length);
			for (const region of ["", "us", "us-2", "none", "*"]) {
				for (const partition of ["*", "a", "a-west", "none"]) {
					for (const namespace of ["*", "", "n", "none"]) {
						for (const prefix of ["", "a", "a-", "none"]) {
							const requested = query({ region, partition, namespace, prefix });
							const { resources } = await backend.list(requested);
							assert.deepEqual(
								resources,
								all.filter((each) => matches(requested, each)),
							);
						}
					}
				}
			}
		},
	},
	{
		name: "follow all other resources in lists, by region",
		async run(harness) {
			await fill(harness);
			const { resources } = await harness.backend.list(query({ region: "*" }));
			const places = resources.map(({ id }) =>
				[id?.region ?? "", id?.tenancy?.partition, id?.tenancy?.namespace, id?.name].join("\0"),
			);
			assert.deepEqual(places, [...places].sort());
		},
	},
	{
		name: "are sent to watches that select them, and to no others",
		async run({ backend }) {
			const readers = new Map(
				["", "us", "*"].map((region) => [region, new WatchReader(backend, query({ region }))]),
			);
			const imported = query({ partition: "west" });
			readers.set("west", new WatchReader(backend, imported));
			for (const reader of readers.values()) {
				assert.deepEqual((await reader.snapshot()).resources, []);
			}
			const copy = await store(backend, resource("copy", { region: "us" }));
			await store(backend, resource("other", { region: "us-2" }));
			await store(backend, resource("imported", { partition: "west", isImported: true }));
			await backend.commit([remove(copy)]);
			const last = await store(backend, resource("local"));
			const seen = async (region: string, events: number) =>
				((await readers.get(region)?.take(events)) ?? []).map((event) =>
					describeEvent(event).replace(/@.*/, ""),
				);
			assert.deepEqual(await seen("", 1), ["upsert local"]);
			assert.deepEqual(await seen("us", 2), ["upsert copy", "delete copy"]);
			assert.deepEqual(await seen("west", 1), ["upsert imported"]);
			assert.deepEqual(await seen("*", 5), [
				"upsert copy",
				"upsert other",
				"upsert imported",
				"delete copy",
				"upsert local",
			]);
			const resumed = new WatchReader(backend, query({ region: "us" }), {
				afterVersion: copy.version,
			});
			assert.equal(describeEvent(await resumed.next()), "delete copy");
			const snapshot = await new WatchReader(backend, query({ region: "*" })).snapshot();
			assert.deepEqual(
				describeState(snapshot.resources),
				describeState((await backend.list(query({ region: "*" }))).resources),
			);
			assert.equal(snapshot.version, last.version);
		},
	},
	{
		name: "are not counted with the resources of their tenancy",
		async run(harness) {
			await fill(harness);
			const { backend } = harness;
			const inPartition = namespaces.length * resourceNames.length;
			for (const region of regions) {
				assert.deepEqual(
					await backend.countByTypeIn({ partition: "a", region }, { consistency: "strong" }),
					new Map([["demo.v2.Artist", inPartition]]),
				);
			}
			const elsewhere = { partition: "a-west", region: "us" };
			assert.deepEqual(await backend.countByTypeIn(elsewhere), new Map());
		},
	},
];
