import assert from "node:assert/strict";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import {
	describeEvent,
	idFor,
	idOf,
	put,
	query,
	remove,
	resource,
	store,
	WatchReader,
} from "./test-resources.ts";

export const resumeBehaviors: readonly Behavior[] = [
	{
		name: "resumes after the end of a snapshot without another one",
		async run({ backend }) {
			await store(backend, resource("a"));
			const first = new WatchReader(backend);
			const { version } = await first.snapshot();
			first.abort();
			const b = await store(backend, resource("b"));
			const resumed = new WatchReader(backend, query(), { afterVersion: version });
			const c = await store(backend, resource("c"));
			assert.deepEqual((await resumed.take(2)).map(describeEvent), [
				`upsert b@${b.version}`,
				`upsert c@${c.version}`,
			]);
			resumed.abort();
		},
	},
	{
		name: "resumes after every version that it has sent, with all later changes",
		async run({ backend }) {
			const whole = new WatchReader(backend);
			const { version: start } = await whole.snapshot();
			for (let round = 0; round < 10; round++) {
				const [a] = (
					await backend.commit([put(resource(`a-${round}`)), put(resource(`b-${round}`))])
				).resources;
				assert.ok(a);
				await backend.commit([remove(a), put(resource(`c-${round}`))]);
			}
			const events = await whole.take(40);
			const story = events.map(describeEvent);
			for (const [index, version] of [start, ...events.map((each) => each.version)].entries()) {
				if (version === undefined) {
					continue;
				}
				const resumed = new WatchReader(backend, query(), { afterVersion: version });
				const rest = await resumed.take(story.length - index);
				assert.deepEqual(rest.map(describeEvent), story.slice(index));
				resumed.abort();
			}
			whole.abort();
		},
	},
	{
		name: "resumes after a version of another type's commit",
		async run({ backend }) {
			const a = await store(backend, resource("a"));
			const other = await store(backend, resource("b", { namespace: "other" }));
			const c = await store(backend, resource("c"));
			const resumed = new WatchReader(backend, query({ namespace: "default" }), {
				afterVersion: other.version,
			});
			assert.deepEqual((await resumed.take(1)).map(describeEvent), [`upsert c@${c.version}`]);
			resumed.abort();
			assert.ok(a);
		},
	},
	{
		name: "resumes after the current version with what comes next",
		async run({ backend }) {
			const { version } = await store(backend, resource("a"));
			const resumed = new WatchReader(backend, query(), { afterVersion: version });
			const next = resumed.next();
			const deletion = await backend.commit([
				{ op: "delete", id: idFor("a"), expectedVersion: version },
			]);
			const event = await next;
			assert.equal(describeEvent(event), "delete a");
			assert.equal(event.version, deletion.version);
			resumed.abort();
		},
	},
	{
		name: "refuses to resume after a version that is malformed or not reached yet",
		async run({ backend }) {
			await store(backend, resource("a"));
			for (const afterVersion of ["999999999", "nonsense", "-1", "1.5", " 1", "01"]) {
				const failure = await new WatchReader(backend, query(), { afterVersion }).failure();
				assert.ok(failure instanceof VersionCompacted, String(failure));
				assert.equal(failure.version, afterVersion);
			}
		},
	},
	{
		name: "refuses to resume after a version whose successors were dropped from the log",
		limits: { logEvents: 10 },
		async run({ backend }) {
			const versions: string[] = [];
			for (let count = 0; count < 30; count++) {
				versions.push((await store(backend, resource(`a${count}`))).version);
			}
			const early = new WatchReader(backend, query(), { afterVersion: versions[5] ?? "" });
			assert.ok((await early.failure()) instanceof VersionCompacted);
			const late = new WatchReader(backend, query(), { afterVersion: versions[25] ?? "" });
			assert.equal((await late.take(4)).length, 4);
			late.abort();
		},
	},
	{
		name: "ends a watch that falls out of the log by events, and no other",
		limits: { logEvents: 10 },
		async run({ backend }) {
			const slow = new WatchReader(backend);
			const fast = new WatchReader(backend);
			await slow.snapshot();
			await fast.snapshot();
			for (let count = 0; count < 30; count++) {
				await store(backend, resource(`a${count}`));
				assert.equal((await fast.next()).kind, "upsert");
			}
			assert.ok((await slow.failure()) instanceof WatchClosed);
			fast.abort();
		},
	},
	{
		name: "ends a watch that falls out of the log while it reads its snapshot",
		limits: { logEvents: 10 },
		async run({ backend }) {
			await store(backend, resource("a"));
			const slow = new WatchReader(backend);
			await slow.next();
			for (let count = 0; count < 30; count++) {
				await store(backend, resource(`b${count}`));
			}
			assert.ok((await slow.failure()) instanceof WatchClosed);
		},
	},
	{
		name: "ends a watch that falls out of the log by bytes",
		limits: { logBytes: 20_000 },
		async run({ backend }) {
			const slow = new WatchReader(backend);
			await slow.snapshot();
			const text = "x".repeat(5000);
			for (let version = "", count = 0; count < 10; count++) {
				version = (await store(backend, resource("a", { text }), version)).version;
			}
			assert.ok((await slow.failure()) instanceof WatchClosed);
		},
	},
	{
		name: "sends all events to a watch that falls behind as far as it may",
		limits: { logEvents: 10 },
		async run({ backend }) {
			const slow = new WatchReader(backend);
			await slow.snapshot();
			for (let round = 0; round < 5; round++) {
				const stored = [];
				for (let count = 0; count < 10; count++) {
					stored.push(await store(backend, resource(`a-${round}-${count}`)));
				}
				const events = await slow.take(10);
				assert.deepEqual(
					events.map((event) => event.kind === "upsert" && idOf(event.resource)),
					stored.map(idOf),
				);
			}
			slow.abort();
		},
	},
];
