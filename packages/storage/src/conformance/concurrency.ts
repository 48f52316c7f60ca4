import assert from "node:assert/strict";
import { CasFailure } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import {
	idFor,
	names,
	put,
	query,
	resource,
	store,
	textOf,
	WatchReader,
} from "./test-resources.ts";

/** Increments the number in the data of a resource, retrying until the commit succeeds. */
async function increment({ backend }: Parameters<Behavior["run"]>[0], name: string) {
	for (;;) {
		const current = await backend.read(idFor(name));
		try {
			const text = String(Number(textOf(current)) + 1);
			return await store(backend, resource(name, { text }), current.version);
		} catch (error) {
			assert.ok(error instanceof CasFailure);
		}
	}
}

export const concurrencyBehaviors: readonly Behavior[] = [
	{
		name: "loses no update of competing writers",
		async run(harness) {
			await store(harness.backend, resource("counter", { text: "0" }));
			const writer = async () => {
				for (let count = 0; count < 10; count++) {
					await increment(harness, "counter");
				}
			};
			await Promise.all(Array.from({ length: 10 }, writer));
			assert.equal(textOf(await harness.backend.read(idFor("counter"))), "100");
		},
	},
	{
		name: "lets exactly one of many concurrent creations of a name succeed",
		async run({ backend }) {
			for (let round = 0; round < 10; round++) {
				const outcomes = await Promise.allSettled(
					Array.from({ length: 20 }, (_, index) =>
						backend.commit([put(resource(`a-${round}`, { uid: `uid-${index}` }))]),
					),
				);
				assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
				for (const outcome of outcomes) {
					assert.ok(outcome.status === "fulfilled" || outcome.reason instanceof CasFailure);
				}
			}
		},
	},
	{
		name: "includes a commit in reads and lists as soon as it resolves",
		async run({ backend }) {
			const writer = async (_: unknown, index: number) => {
				for (let version = "", count = 0; count < 10; count++) {
					const stored = await store(backend, resource(`a-${index}`), version);
					version = stored.version;
					assert.equal(await backend.read(idFor(`a-${index}`)), stored);
					const listed = await backend.list(query({ prefix: `a-${index}` }));
					assert.ok(listed.resources.includes(stored));
					assert.ok(Number(listed.version) >= Number(version));
				}
			};
			await Promise.all(Array.from({ length: 10 }, writer));
		},
	},
	{
		name: "orders versions and events of commits that depend on each other",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			const { version: start } = await watch.snapshot();
			const writer = async (_: unknown, index: number) => {
				for (let version = "", count = 0; count < 20; count++) {
					const next = await store(backend, resource(`a-${index}`), version);
					assert.ok(Number(next.version) > Number(version));
					version = next.version;
				}
			};
			await Promise.all(Array.from({ length: 10 }, writer));
			let last = Number(start);
			const newest = new Map<string, string>();
			for (const event of await watch.take(200)) {
				assert.ok(event.kind === "upsert");
				const { version, id } = event.resource;
				assert.ok(Number(version) >= last);
				last = Number(version);
				assert.equal(event.previous?.version, newest.get(id?.name ?? ""));
				newest.set(id?.name ?? "", version);
			}
			assert.equal((await names(backend)).length, 10);
			watch.abort();
		},
	},
	{
		name: "shows each commit completely or not at all in lists and snapshots",
		async run({ backend }) {
			let done = false;
			const writing = (async () => {
				for (let version = "", count = 0; count < 100; count++) {
					const text = String(count);
					const pair = ["left", "right"].map((name) => put(resource(name, { text }), version));
					version = (await backend.commit(pair)).version;
				}
				done = true;
			})();
			while (!done) {
				const { resources } = await backend.list(query());
				assert.equal(textOf(resources[0]), textOf(resources[1]));
				const watch = new WatchReader(backend);
				const snapshot = await watch.snapshot();
				assert.equal(textOf(snapshot.resources[0]), textOf(snapshot.resources[1]));
				watch.abort();
				await new Promise((resolve) => setImmediate(resolve));
			}
			await writing;
		},
	},
];
