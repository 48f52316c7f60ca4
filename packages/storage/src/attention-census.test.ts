import { create } from "@bufbuild/protobuf";
import { Condition_State, type Resource, ResourceSchema } from "@plinth/proto";
import { deletionTimestampKey, gvkKey } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	defaultStorageLimits,
	type StateChange,
	StateStore,
	type TypeStatistics,
} from "./index.ts";

const states = [Condition_State.TRUE, Condition_State.FALSE, Condition_State.UNKNOWN];

/** One name of one kind, in one of two group versions, with any statuses. */
const resources = fc
	.record({
		name: fc.constantFrom("a", "b", "c", "d"),
		kind: fc.constantFrom("Artist", "Album"),
		groupVersion: fc.constantFrom("v1", "v2"),
		generation: fc.constantFrom("1", "2"),
		metadata: fc.constantFrom<Record<string, string>>(
			{},
			{ [deletionTimestampKey]: "2026-01-02T03:04:05Z" },
		),
		status: fc.dictionary(
			fc.constantFrom("singers", "bookers"),
			fc.record({
				observedGeneration: fc.constantFrom("", "1", "2"),
				conditions: fc.array(fc.record({ state: fc.constantFrom(...states) }), { maxLength: 3 }),
			}),
			{ maxKeys: 2 },
		),
	})
	.map(({ name, kind, groupVersion, ...content }) =>
		create(ResourceSchema, {
			id: { name, type: { group: "demo", groupVersion, kind } },
			...content,
		}),
	);
const changes = fc.record({
	op: fc.constantFrom<"put" | "delete">("put", "put", "delete"),
	resource: resources,
});

/** Counts by a look at every resource. */
function scanned(stored: readonly Resource[]): Record<string, Omit<TypeStatistics, "writes">> {
	const byType = Map.groupBy(stored, ({ id }) => (id?.type === undefined ? "" : gvkKey(id.type)));
	return Object.fromEntries(
		[...byType].map(([key, all]) => {
			const count = (needs: (resource: Resource) => boolean) => all.filter(needs).length;
			const reported = ({ status }: Resource) =>
				Object.values(status).filter(({ conditions }) => conditions.length > 0);
			const counts = {
				resources: all.length,
				withFalse: count((each) =>
					reported(each)
						.flatMap(({ conditions }) => conditions)
						.some(({ state }) => state === Condition_State.FALSE),
				),
				withStale: count((each) =>
					reported(each).some(({ observedGeneration }) => observedGeneration !== each.generation),
				),
				beingDeleted: count(({ metadata }) => deletionTimestampKey in metadata),
			};
			return [key, counts];
		}),
	);
}

function counted(store: StateStore): Record<string, Omit<TypeStatistics, "writes">> {
	const present = [...store.statistics().types].filter(([, { resources }]) => resources > 0);
	return Object.fromEntries(present.map(([key, { writes, ...counts }]) => [key, counts]));
}

const keyOf = ({ id }: Resource) => `${id?.type?.kind} ${id?.name}`;

describe("the counts of a state store", () => {
	it("are those of a scan after any loads and commits, and writes only grow", () => {
		fc.assert(
			fc.property(fc.array(resources), fc.array(fc.array(changes)), (loaded, revisions) => {
				const store = new StateStore(systemRuntime, defaultStorageLimits);
				const stored = new Map<string, Resource>();
				for (const resource of loaded) {
					store.load(resource);
					stored.set(keyOf(resource), resource);
				}
				store.begin(1);
				expect(counted(store)).toEqual(scanned([...stored.values()]));
				let writes = 0;
				for (const [index, all] of revisions.entries()) {
					// Each change of a revision has another name; only what exists is deleted.
					const distinct = new Map(all.map((each) => [keyOf(each.resource), each]));
					const revision = [...distinct].flatMap(([key, { op, resource }]): StateChange[] => {
						const former = stored.get(key);
						if (op === "put") {
							return [{ op, resource }];
						}
						return former === undefined ? [] : [{ op: "delete", resource: former }];
					});
					store.apply(index + 2, revision);
					for (const { op, resource } of revision) {
						stored.delete(keyOf(resource));
						if (op === "put") {
							stored.set(keyOf(resource), resource);
						}
					}
					writes += revision.length;
					expect(counted(store)).toEqual(scanned([...stored.values()]));
					const { types } = store.statistics();
					expect([...types.values()].reduce((sum, each) => sum + each.writes, 0)).toBe(writes);
				}
			}),
		);
	});

	it("tell of open watches, of the log, and of the oldest version after which all can resume", async () => {
		const limits = { ...defaultStorageLimits, logEvents: 2 };
		const store = new StateStore(systemRuntime, limits);
		store.begin(10);
		const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
		const put = (revision: number) =>
			store.apply(revision, [
				{ op: "put", resource: create(ResourceSchema, { id: { name: `a${revision}`, type } }) },
			]);
		put(11);
		expect(store.statistics()).toMatchObject({
			...{ version: "11", resources: 1, logEvents: 1, oldestVersion: "10", watches: 0 },
		});
		const stop = new AbortController();
		const tenancy = { partition: "*", namespace: "*" };
		const query = { type, tenancy, namePrefix: "" };
		const watch = store.watch(query, { signal: stop.signal }, async () => {});
		const events = watch[Symbol.asyncIterator]();
		await events.next();
		expect(store.statistics().watches).toBe(1);
		stop.abort();
		await expect(events.next()).rejects.toThrow();
		put(12);
		put(13);
		expect(store.statistics()).toMatchObject({ logEvents: 2, oldestVersion: "11", watches: 0 });
	});
});
