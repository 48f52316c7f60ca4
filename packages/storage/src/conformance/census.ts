import assert from "node:assert/strict";
import { typeOf } from "@plinth/resource";
import type { StorageBackend } from "../backend.ts";
import type { TenancyUnit } from "../tenancy-census.ts";
import type { Behavior } from "./behavior.ts";
import { albumType, artistType, idFor, put, remove, resource, store } from "./test-resources.ts";

const v1 = typeOf({ ...artistType, groupVersion: "v1" });

/** The census of a unit, as a plain object. */
async function countIn(
	backend: StorageBackend,
	unit: TenancyUnit,
): Promise<Readonly<Record<string, number>>> {
	return Object.fromEntries(await backend.countByTypeIn(unit, { consistency: "strong" }));
}

export const censusBehaviors: readonly Behavior[] = [
	{
		name: "counts the resources of each namespace and each partition, by type",
		async run({ backend }) {
			await store(backend, resource("a", { partition: "p", namespace: "n" }));
			await store(backend, resource("b", { partition: "p", namespace: "n" }));
			await store(backend, resource("c", { partition: "p", namespace: "n", type: albumType }));
			await store(backend, resource("a", { partition: "p", namespace: "m", type: v1 }));
			await store(backend, resource("a", { partition: "p", namespace: "", type: albumType }));
			await store(backend, resource("a", { partition: "q", namespace: "n" }));
			const of = (unit: TenancyUnit) => countIn(backend, unit);
			assert.deepEqual(await of({ partition: "p", namespace: "n" }), {
				"demo.v2.Artist": 2,
				"demo.v2.Album": 1,
			});
			assert.deepEqual(await of({ partition: "p", namespace: "m" }), { "demo.v1.Artist": 1 });
			assert.deepEqual(await of({ partition: "p", namespace: "" }), { "demo.v2.Album": 1 });
			assert.deepEqual(await of({ partition: "p" }), {
				"demo.v2.Artist": 2,
				"demo.v2.Album": 2,
				"demo.v1.Artist": 1,
			});
			assert.deepEqual(await of({ partition: "q" }), { "demo.v2.Artist": 1 });
		},
	},
	{
		name: "counts nothing in an empty unit, whatever its name",
		async run({ backend }) {
			await store(backend, resource("a", { partition: "p", namespace: "n" }));
			for (const unit of [
				{ partition: "q" },
				{ partition: "" },
				{ partition: "p", namespace: "" },
				{ partition: "p", namespace: "*" },
				{ partition: "*" },
				{ partition: "n", namespace: "p" },
				{ partition: "__proto__", namespace: "constructor" },
			]) {
				assert.deepEqual(await countIn(backend, unit), {});
			}
		},
	},
	{
		name: "follows replacements, deletions and changes of the group version",
		async run({ backend }) {
			const unit = { partition: "default", namespace: "default" };
			const first = await store(backend, resource("a"));
			await store(backend, resource("b"));
			const second = await store(backend, resource("a", { text: "2" }), first.version);
			assert.deepEqual(await countIn(backend, unit), { "demo.v2.Artist": 2 });
			const third = await store(backend, resource("a", { type: v1 }), second.version);
			assert.deepEqual(await countIn(backend, unit), {
				"demo.v2.Artist": 1,
				"demo.v1.Artist": 1,
			});
			await backend.commit([remove(third)]);
			assert.deepEqual(await countIn(backend, unit), { "demo.v2.Artist": 1 });
			assert.deepEqual(await countIn(backend, { partition: "default" }), { "demo.v2.Artist": 1 });
			await backend.commit([remove(await backend.read(idFor("b")))]);
			assert.deepEqual(await countIn(backend, unit), {});
			assert.deepEqual(Object.fromEntries(await backend.countByType()), {});
		},
	},
	{
		name: "counts commits completely, and ignores failed commits and dry runs",
		async run({ backend }) {
			const unit = { partition: "default", namespace: "default" };
			const stored = await store(backend, resource("a"));
			await assert.rejects(backend.commit([put(resource("b")), put(resource("a"))]));
			await backend.commit([put(resource("b"))], { dryRun: true });
			assert.deepEqual(await countIn(backend, unit), { "demo.v2.Artist": 1 });
			await backend.commit([remove(stored), put(resource("c", { type: albumType }))]);
			assert.deepEqual(await countIn(backend, unit), { "demo.v2.Album": 1 });
		},
	},
	{
		name: "returns counts that later commits do not change",
		async run({ backend }) {
			await store(backend, resource("a"));
			const counts = await backend.countByTypeIn({ partition: "default" });
			await store(backend, resource("b"));
			assert.equal(counts.get("demo.v2.Artist"), 1);
		},
	},
];
