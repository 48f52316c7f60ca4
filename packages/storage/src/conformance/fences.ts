import assert from "node:assert/strict";
import { Fenced } from "../errors.ts";
import type { Behavior } from "./behavior.ts";
import { names, put, resource } from "./test-resources.ts";

const { signal } = new AbortController();

export const fenceBehaviors: readonly Behavior[] = [
	{
		name: "commits with the fence of a lease that is held",
		async run({ backend, leases }) {
			const { fence } = await leases.acquire("leader", signal);
			await backend.commit([put(resource("a"))], { fence });
			assert.deepEqual(await names(backend), ["a"]);
		},
	},
	{
		name: "refuses the fence of a former holder, and changes nothing",
		async run({ backend, leases }) {
			const former = await leases.acquire("leader", signal);
			await former.release();
			const current = await leases.acquire("leader", signal);
			await assert.rejects(backend.commit([put(resource("a"))], former), (error) => {
				assert.ok(error instanceof Fenced);
				assert.equal(error.lease, "leader");
				return true;
			});
			await backend.commit([put(resource("b"))], current);
			assert.deepEqual(await names(backend), ["b"]);
		},
	},
	{
		name: "refuses a fence that was never issued",
		async run({ backend }) {
			const fence = { lease: "nobody", token: "1" };
			await assert.rejects(backend.commit([put(resource("a"))], { fence }), Fenced);
		},
	},
	{
		name: "keeps the fences of different leases apart",
		async run({ backend, leases }) {
			const one = await leases.acquire("one", signal);
			const two = await leases.acquire("two", signal);
			await one.release();
			await leases.acquire("one", signal);
			await assert.rejects(backend.commit([put(resource("a"))], one), Fenced);
			await backend.commit([put(resource("a"))], two);
		},
	},
	{
		name: "refuses a dry run, and a commit that would change nothing, by its fence too",
		async run({ backend, leases }) {
			const former = await leases.acquire("leader", signal);
			await former.release();
			await leases.acquire("leader", signal);
			const { fence } = former;
			await assert.rejects(backend.commit([put(resource("a"))], { fence, dryRun: true }), Fenced);
			await assert.rejects(backend.commit([], { fence }), Fenced);
		},
	},
	{
		name: "has applied all commits of a former holder after catching up",
		async run({ backend, leases }) {
			for (let round = 0; round < 10; round++) {
				const former = await leases.acquire("leader", signal);
				const { fence } = former;
				const late = Promise.allSettled(
					Array.from({ length: 5 }, (_, index) =>
						backend.commit([put(resource(`r${round}-${index}`))], { fence }),
					),
				);
				await former.release();
				const current = await leases.acquire("leader", signal);
				await backend.catchUp(signal);
				const seen = await names(backend);
				await late;
				assert.deepEqual(await names(backend), seen);
				await current.release();
			}
		},
	},
];
