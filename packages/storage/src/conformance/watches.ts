import assert from "node:assert/strict";
import { nameKey, typeOf } from "@plinth/resource";
import { matches } from "../query.ts";
import type { Behavior } from "./behavior.ts";
import { allQueries, fill } from "./lists.ts";
import {
	albumType,
	artistType,
	describeEvent,
	followEvent,
	idFor,
	idOf,
	put,
	query,
	remove,
	resource,
	store,
	WatchReader,
} from "./test-resources.ts";

export const watchBehaviors: readonly Behavior[] = [
	{
		name: "ends the snapshot of an empty type at once",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			const event = await watch.next();
			assert.equal(event.kind, "end-of-snapshot");
			assert.match(event.version ?? "", /^\d+$/);
			watch.abort();
		},
	},
	{
		name: "sends a snapshot, its end with a version, then the changes",
		async run({ backend }) {
			const a = await store(backend, resource("a"));
			const b = await store(backend, resource("b"));
			const watch = new WatchReader(backend);
			const { resources, version } = await watch.snapshot();
			assert.deepEqual(resources, [a, b]);
			assert.equal(version, b.version);
			const c = await store(backend, resource("c"));
			const event = await watch.next();
			assert.ok(event.kind === "upsert");
			assert.deepEqual([event.resource, event.version], [c, c.version]);
			watch.abort();
		},
	},
	{
		name: "sends no version before the end of a snapshot, a strong one included",
		async run({ backend }) {
			const stored = await store(backend, resource("a"));
			const watch = new WatchReader(backend, query(), { consistency: "strong" });
			const [first, second] = await watch.take(2);
			assert.equal(first?.kind === "upsert" && first.resource, stored);
			assert.equal(first?.version, undefined);
			assert.deepEqual(second, { kind: "end-of-snapshot", version: stored.version });
			watch.abort();
		},
	},
	{
		name: "sends the stored object, with the object that it replaced or the last one before a deletion",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const first = await store(backend, resource("a"));
			const second = await store(backend, resource("a"), first.version);
			const deletion = await backend.commit([remove(second)]);
			const [created, updated, deleted] = await watch.take(3);
			assert.ok(created?.kind === "upsert" && created.resource === first);
			assert.equal(created.previous, undefined);
			assert.ok(updated?.kind === "upsert" && updated.resource === second);
			assert.equal(updated.previous, first);
			assert.ok(deleted?.kind === "delete" && deleted.resource === second);
			assert.equal(deleted.version, deletion.version);
			watch.abort();
		},
	},
	{
		name: "sends one object to all watches of a type",
		async run({ backend }) {
			const watches = [new WatchReader(backend), new WatchReader(backend)];
			for (const watch of watches) {
				await watch.snapshot();
			}
			const stored = await store(backend, resource("a"));
			for (const watch of watches) {
				const event = await watch.next();
				assert.ok(event.kind === "upsert" && event.resource === stored);
				watch.abort();
			}
		},
	},
	{
		name: "sends what each query matches, in the snapshot and after it",
		async run(harness) {
			const { backend } = harness;
			await fill(harness);
			const watches = allQueries.map((each) => ({
				query: each,
				reader: new WatchReader(backend, each),
			}));
			const { resources: before } = await backend.list(query());
			for (const watch of watches) {
				const { resources } = await watch.reader.snapshot();
				assert.deepEqual(
					resources,
					before.filter((each) => matches(watch.query, each)),
				);
			}
			for (const each of before) {
				const { version, resources } = await backend.commit([put(each, each.version)]);
				assert.equal(resources[0]?.version, version);
			}
			const { resources: after } = await backend.list(query());
			for (const { query: of, reader } of watches) {
				const expected = after.filter((each) => matches(of, each));
				const events = await reader.take(expected.length);
				const sent = events.map((event) => event.kind === "upsert" && event.resource);
				assert.deepEqual(new Set(sent), new Set(expected));
				reader.abort();
			}
		},
	},
	{
		name: "sends no events that do not match the query",
		async run({ backend }) {
			const watch = new WatchReader(backend, query({ namespace: "one", prefix: "a" }));
			await watch.snapshot();
			await store(backend, resource("a", { namespace: "two" }));
			await store(backend, resource("b", { namespace: "one" }));
			await store(backend, resource("a", { namespace: "one", type: albumType }));
			const { version } = await store(backend, resource("ab", { namespace: "one" }));
			assert.deepEqual((await watch.take(1)).map(describeEvent), [`upsert ab@${version}`]);
			watch.abort();
		},
	},
	{
		name: "sets the version on the last event of a revision only",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const { version } = await backend.commit(["a", "b", "c"].map((name) => put(resource(name))));
			const events = await watch.take(3);
			assert.deepEqual(
				events.map((event) => event.version),
				[undefined, undefined, version],
			);
			watch.abort();
		},
	},
	{
		name: "sets the version on the last event that a watch gets of a revision, whatever follows it",
		async run({ backend }) {
			const old = await store(backend, resource("a-old"));
			const watch = new WatchReader(backend, query({ prefix: "a" }));
			await watch.snapshot();
			const { version } = await backend.commit([
				put(resource("b1")),
				put(resource("a1")),
				put(resource("b2")),
				remove(old),
				put(resource("b3")),
				put(resource("a2", { type: albumType })),
			]);
			const next = await store(backend, resource("a3"));
			const events = await watch.take(3);
			assert.deepEqual(events.map(describeEvent), [
				`upsert a1@${version}`,
				"delete a-old",
				`upsert a3@${next.version}`,
			]);
			assert.deepEqual(
				events.map((event) => event.version),
				[undefined, version, next.version],
			);
			watch.abort();
		},
	},
	{
		name: "sends a change of group version with the resource stored before",
		async run({ backend }) {
			const first = await store(backend, resource("a"));
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const v3 = typeOf({ ...artistType, groupVersion: "v3" });
			const second = await store(backend, resource("a", { type: v3 }), first.version);
			const event = await watch.next();
			assert.ok(event.kind === "upsert");
			assert.equal(event.previous, first);
			assert.equal(event.resource, second);
			watch.abort();
		},
	},
	{
		name: "never returns anything older than a watch has sent",
		async run({ backend }) {
			const watch = new WatchReader(backend);
			await watch.snapshot();
			const writing = (async () => {
				for (let version = "", count = 0; count < 100; count++) {
					version = (await store(backend, resource("a"), version)).version;
				}
			})();
			for (let count = 0; count < 100; count++) {
				const event = await watch.next();
				assert.ok(event.kind === "upsert");
				const read = await backend.read(idFor("a"));
				assert.ok(Number(read.version) >= Number(event.resource.version));
				const listed = await backend.list(query());
				assert.ok(Number(listed.version) >= Number(event.version));
			}
			await writing;
			watch.abort();
		},
	},
	{
		name: "sends the same events to many watches that begin at any time",
		async run({ backend }) {
			const readers: WatchReader[] = [];
			let version = "";
			for (let count = 0; count < 60; count++) {
				const other = await store(backend, resource(`other-${count}`));
				version = (await store(backend, resource("a"), version)).version;
				if (count % 10 === 0) {
					const reader = new WatchReader(backend);
					await reader.next();
					readers.push(reader);
				}
				if (count % 3 === 0) {
					await backend.commit([remove(other)]);
				}
			}
			const end = await store(backend, resource("the-end"));
			const { resources } = await backend.list(query());
			for (const reader of readers) {
				const state = new Map();
				// An update of "a" repeats the first event, unless "a" was deleted.
				for (const event of await reader.until(end.version)) {
					followEvent(state, event);
				}
				for (const each of state.values()) {
					assert.ok(resources.includes(each));
				}
				assert.ok(state.has(nameKey(idOf(end))));
				reader.abort();
			}
		},
	},
	{
		name: "is not blocked by a watch that nobody reads",
		async run({ backend }) {
			await store(backend, resource("a"));
			const idle = new WatchReader(backend);
			await idle.next();
			for (let count = 0; count < 50; count++) {
				await store(backend, resource(`more-${count}`));
			}
			const { resources } = await idle.snapshot();
			assert.equal(resources.length, 0);
			assert.equal((await idle.take(50)).length, 50);
			idle.abort();
		},
	},
	{
		name: "throws the reason of its signal, while it waits and before it begins",
		async run({ backend }) {
			const reason = new Error("enough");
			const waiting = new WatchReader(backend);
			await waiting.snapshot();
			const failure = waiting.failure();
			waiting.abort(reason);
			assert.equal(await failure, reason);
			const early = new WatchReader(backend);
			early.abort(reason);
			assert.equal(await early.failure(), reason);
		},
	},
	{
		name: "ends when its consumer leaves, and stays ended",
		async run({ backend }) {
			const abort = new AbortController();
			const watch = backend.watchList(query(), { signal: abort.signal });
			for await (const event of watch) {
				assert.equal(event.kind, "end-of-snapshot");
				break;
			}
			const reader = new WatchReader(backend);
			await reader.snapshot();
			await reader.leave();
			await store(backend, resource("a"));
			await assert.rejects(reader.next(), { name: "AssertionError" });
		},
	},
	{
		name: "sends bookmarks when there is nothing else to send",
		async run({ backend, elapse }) {
			const watch = new WatchReader(backend, query({ prefix: "a" }), { bookmarkIntervalMs: 1000 });
			await watch.snapshot();
			const { version } = await store(backend, resource("b"));
			const bookmark = watch.next();
			await elapse(1000);
			assert.deepEqual(await bookmark, { kind: "bookmark", version });
			const next = watch.next();
			await elapse(500);
			const stored = await store(backend, resource("a"));
			const event = await next;
			assert.ok(event.kind === "upsert");
			assert.equal(idOf(event.resource), idOf(stored));
			watch.abort();
		},
	},
];
