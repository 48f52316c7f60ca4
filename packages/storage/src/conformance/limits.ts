import assert from "node:assert/strict";
import { Exhausted } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import { idFor, names, put, remove, resource, store, WatchReader } from "./test-resources.ts";

function namesLimit(limit: number) {
	return (error: unknown) => error instanceof Exhausted && error.message.includes(` ${limit} `);
}

export const limitBehaviors: readonly Behavior[] = [
	{
		name: "refuses a commit of too many mutations, and names the limit",
		limits: { mutations: 3 },
		async run({ backend }) {
			const puts = ["a", "b", "c", "d"].map((name) => put(resource(name)));
			await assert.rejects(backend.commit(puts), namesLimit(3));
			await backend.commit(puts.slice(0, 3));
			assert.deepEqual(await names(backend), ["a", "b", "c"]);
		},
	},
	{
		name: "refuses a resource that is too large, and names the limit",
		limits: { resourceBytes: 2000 },
		async run({ backend }) {
			const large = resource("a", { text: "x".repeat(2000) });
			await assert.rejects(backend.commit([put(large)]), namesLimit(2000));
			await store(backend, resource("a", { text: "x".repeat(1000) }));
		},
	},
	{
		name: "refuses a commit that is too large, and names the limit",
		limits: { commitBytes: 2000 },
		async run({ backend }) {
			const puts = ["a", "b"].map((name) => put(resource(name, { text: "x".repeat(900) })));
			await assert.rejects(backend.commit(puts), namesLimit(2000));
			await backend.commit(puts.slice(0, 1));
			assert.deepEqual(await names(backend), ["a"]);
		},
	},
	{
		name: "refuses to grow near the memory limit, and allows everything else",
		limits: { memoryBytes: 10_000 },
		async run({ backend }) {
			const text = "x".repeat(1000);
			const refused = await Promise.allSettled(
				Array.from({ length: 20 }, (_, index) => store(backend, resource(`a${index}`, { text }))),
			);
			assert.ok(refused.some((each) => each.status === "rejected"));
			for (const each of refused) {
				assert.ok(each.status === "fulfilled" || namesLimit(10_000)(each.reason));
			}
			const watch = new WatchReader(backend);
			const { resources } = await watch.snapshot();
			const [first, second] = resources;
			assert.ok(first?.id && second?.id);
			await assert.rejects(store(backend, resource("more", { text })), namesLimit(10_000));
			assert.equal(await backend.read(first.id), first);
			await store(backend, resource(second.id.name, { text: "less" }), second.version);
			assert.equal((await watch.next()).kind, "upsert");
			await backend.commit([remove(first)]);
			assert.equal((await watch.next()).kind, "delete");
			await store(backend, resource("more", { text }));
			assert.equal((await backend.read(idFor("more"))).id?.name, "more");
			watch.abort();
		},
	},
];
