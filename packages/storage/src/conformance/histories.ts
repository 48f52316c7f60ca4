import assert from "node:assert/strict";
import type { Resource } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { CasFailure } from "../errors.ts";
import type { HistorySource, StoredVersion } from "../history.ts";
import { deploymentWriter } from "../written-by.ts";
import type { Behavior } from "./behavior.ts";
import { artistType, idFor, put, remove, resource, store, textOf } from "./test-resources.ts";

async function historyOf(backend: HistorySource, name: string) {
	const { signal } = new AbortController();
	return backend.history(idFor(name), { consistency: "strong", signal });
}

/** A version to compare: `updated 3 "text" by somebody`. */
function described({ change, resource, writtenBy }: StoredVersion): string {
	return `${change} "${textOf(resource)}" by ${writtenBy}`;
}

export const historyBehaviors: readonly Behavior[] = [
	{
		name: "tells the versions of a resource, the newest first, with their time and who has written them",
		async run({ backend, elapse }) {
			const as = (writtenBy: string) => ({ writtenBy });
			const {
				resources: [first],
			} = await backend.commit([put(resource("a", { text: "1" }))], as("ann"));
			assert.ok(first);
			await elapse(5_000);
			const other = put(resource("b", { text: "other" }));
			const second = put(resource("a", { text: "2" }), first.version);
			const { resources } = await backend.commit([other, second], as("bob"));
			assert.ok(resources[1]);
			await elapse(5_000);
			await backend.commit([remove(resources[1])], as("ann"));
			await store(backend, resource("a", { text: "3", uid: "again" }));
			const { versions, sinceVersion } = await historyOf(backend, "a");
			assert.deepEqual(versions.map(described), [
				`created "3" by ${deploymentWriter}`,
				`deleted "2" by ann`,
				`updated "2" by bob`,
				`created "1" by ann`,
			]);
			const revisions = versions.map(({ version }) => Number(version));
			assert.deepEqual(
				revisions,
				revisions.toSorted((a, b) => b - a),
			);
			assert.ok(revisions.every((revision) => revision > Number(sinceVersion)));
			const times = versions.map(({ atMs = 0 }) => atMs);
			assert.equal((times[1] ?? 0) - (times[2] ?? 0), 5_000);
			assert.equal((times[2] ?? 0) - (times[3] ?? 0), 5_000);
			assert.equal(versions[2]?.resource, resources[1]);
		},
	},
	{
		name: "names the writer of each of many commits at the same time, with conflicts and dry runs",
		async run({ backend }) {
			const names = ["a", "b", "c", "d", "e"];
			const committed: string[] = [];
			const write = async (index: number) => {
				const writtenBy = `writer ${index}`;
				const name = names[index % names.length] ?? "";
				const over = (stored: Resource | undefined) => [
					put(resource(name, { text: writtenBy }), stored?.version),
					put(resource(`beside-${index}`, { text: writtenBy })),
				];
				const dryRun = index % 7 === 0;
				const stored = await backend.lookup(idFor(name));
				const options = { writtenBy, dryRun, ...(index % 2 === 0 && { rebase: over }) };
				try {
					await backend.commit(over(stored), options);
				} catch (failure) {
					assert.ok(failure instanceof CasFailure);
					return;
				}
				if (!dryRun) {
					committed.push(writtenBy);
				}
			};
			for (let round = 0; round < 10; round++) {
				await Promise.all(Array.from({ length: 30 }, (_, at) => write(30 * round + at)));
			}
			const told: (string | undefined)[] = [];
			for (const name of names) {
				const { versions } = await historyOf(backend, name);
				for (const version of versions) {
					assert.equal(version.writtenBy, textOf(version.resource));
					told.push(version.writtenBy);
				}
			}
			assert.deepEqual(told.toSorted(), committed.toSorted());
			for (const writtenBy of committed) {
				const { versions } = await historyOf(backend, writtenBy.replace("writer ", "beside-"));
				assert.deepEqual(versions.map(described), [`created "${writtenBy}" by ${writtenBy}`]);
			}
		},
	},
	{
		name: "tells the history of a name in all group versions, and none of what never existed",
		async run({ backend }) {
			const first = await store(backend, resource("a"));
			const v1 = typeOf({ ...artistType, groupVersion: "v1" });
			await store(backend, resource("a", { type: v1 }), first.version);
			const { versions } = await historyOf(backend, "a");
			assert.deepEqual(
				versions.map(({ resource: { id } }) => id?.type?.groupVersion),
				["v1", "v2"],
			);
			assert.deepEqual((await historyOf(backend, "b")).versions, []);
		},
	},
	{
		name: "tells what was stored when its log began, and since when it is complete",
		limits: { logEvents: 3 },
		async run({ backend }) {
			let stored: Resource | undefined;
			for (const text of ["1", "2", "3", "4", "5"]) {
				stored = await store(backend, resource("a", { text }), stored?.version);
			}
			const { versions, sinceVersion } = await historyOf(backend, "a");
			assert.deepEqual(
				versions.map(({ change, resource: each }) => `${change} ${textOf(each)}`),
				["updated 5", "updated 4", "updated 3", "unknown 2"],
			);
			assert.equal(versions[3]?.version, sinceVersion);
			assert.equal(versions[3]?.atMs, undefined);
			for (const name of ["b", "c", "d"]) {
				await store(backend, resource(name));
			}
			const later = await historyOf(backend, "a");
			assert.deepEqual(
				later.versions.map(({ change, resource: each }) => `${change} ${textOf(each)}`),
				["unknown 5"],
			);
			assert.equal(later.sinceVersion, stored?.version);
		},
	},
	{
		name: "misses no version while others are written and the log is shortened",
		limits: { logEvents: 5_000 },
		async run({ backend }) {
			await Promise.all(
				Array.from({ length: 4_500 }, (_, index) => store(backend, resource(`other-${index}`))),
			);
			const read = historyOf(backend, "a");
			let stored = await store(backend, resource("a", { text: "0" }));
			const reads = [read];
			for (let round = 1; round < 20; round++) {
				reads.push(historyOf(backend, "a"));
				stored = await store(backend, resource("a", { text: `${round}` }), stored.version);
				await Promise.all(
					Array.from({ length: 100 }, (_, index) =>
						store(backend, resource(`more-${round}-${index}`)),
					),
				);
			}
			for (const { versions } of await Promise.all(reads)) {
				const texts = versions.map(({ resource: each }) => Number(textOf(each)));
				const [newest = -1] = texts;
				assert.deepEqual(
					texts,
					Array.from({ length: newest + 1 }, (_, index) => newest - index),
				);
			}
		},
	},
	{
		name: "ends a read of a history by its signal",
		async run({ backend }) {
			await Promise.all(
				Array.from({ length: 2_500 }, (_, index) => store(backend, resource(`other-${index}`))),
			);
			const ended = new AbortController();
			const read = backend.history(idFor("a"), { signal: ended.signal });
			ended.abort(new Error("enough"));
			await assert.rejects(read, /enough/);
		},
	},
];
