import assert from "node:assert/strict";
import { WatchClosed } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import { idFor, put, resource, store, WatchReader } from "./test-resources.ts";

export const lifecycleBehaviors: readonly Behavior[] = [
	{
		name: "catches up to the newest version",
		async run({ backend }) {
			const { signal } = new AbortController();
			assert.match(await backend.catchUp(signal), /^\d+$/);
			const { version } = await store(backend, resource("a"));
			assert.equal(await backend.catchUp(signal), version);
		},
	},
	{
		name: "ends all watches when it is closed, waiting or not",
		async run({ backend }) {
			await store(backend, resource("a"));
			const waiting = new WatchReader(backend);
			await waiting.snapshot();
			const failure = waiting.failure();
			const inSnapshot = new WatchReader(backend);
			await inSnapshot.next();
			await backend.close();
			assert.ok((await failure) instanceof WatchClosed);
			assert.ok((await inSnapshot.failure()) instanceof WatchClosed);
			assert.ok((await new WatchReader(backend).failure()) instanceof WatchClosed);
		},
	},
	{
		name: "finishes pending commits when it is closed, and accepts no more",
		async run({ backend }) {
			const commits = ["a", "b", "c"].map((name) => backend.commit([put(resource(name))]));
			const closing = backend.close();
			const committed = await Promise.all(commits);
			assert.ok(committed.every(({ version }) => version !== ""));
			await closing;
			await assert.rejects(backend.commit([put(resource("d"))]));
			await assert.rejects(backend.read(idFor("a")));
			await backend.close();
		},
	},
];
