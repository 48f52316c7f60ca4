import fc from "fast-check";
import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

it("runs actions that share a key one after the other in the order of their calls, and forgets the keys", async () => {
	const calls = fc.array(
		fc.record({
			keys: fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 3 }),
			steps: fc.nat(4),
			fails: fc.boolean(),
		}),
		{ maxLength: 20 },
	);
	await fc.assert(
		fc.asyncProperty(calls, async (drawn) => {
			const turns = new Turns();
			const running = new Map<string, number>();
			const order = new Map<string, number[]>();
			const results = await Promise.allSettled(
				drawn.map(({ keys, steps, fails }, at) =>
					turns.run(keys, async () => {
						for (const key of new Set(keys)) {
							expect(running.get(key)).toBeUndefined();
							running.set(key, at);
							order.set(key, [...(order.get(key) ?? []), at]);
						}
						for (let step = 0; step < steps; step++) {
							await null;
						}
						for (const key of keys) {
							running.delete(key);
						}
						if (fails) {
							throw new Error("planned");
						}
						return at;
					}),
				),
			);
			for (const [at, result] of results.entries()) {
				expect(result).toMatchObject(
					drawn[at]?.fails ? { reason: { message: "planned" } } : { value: at },
				);
			}
			for (const [key, ran] of order) {
				expect(ran).toEqual(
					drawn.flatMap(({ keys }, at) => (keys.some((each) => each === key) ? [at] : [])),
				);
			}
			expect(turns.size).toBe(0);
		}),
	);
});

it("removes a waiting action at once if its signal aborts, and nothing overtakes those before it", async () => {
	const turns = new Turns();
	const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const ran: string[] = [];
	const act = (name: string, ends?: Promise<void>) => async () => {
		ran.push(name);
		await ends;
	};
	const caller = new AbortController();
	const running = turns.run(["a"], act("running", first.promise), caller.signal);
	const before = turns.run(["a"], act("before", second.promise));
	const gone = turns.run(["a", "b"], act("gone"), caller.signal);
	const behind = turns.run(["a"], act("behind"));
	const beside = turns.run(["b"], act("beside"));
	while (ran.length === 0) {
		await null;
	}
	caller.abort(new Error("the caller has gone"));
	await expect(gone).rejects.toThrow("the caller has gone");
	await expect(turns.run(["c"], act("late"), caller.signal)).rejects.toThrow("the caller has gone");
	await beside;
	expect(ran).toEqual(["running", "beside"]);
	first.resolve();
	await running;
	expect(ran).toEqual(["running", "beside", "before"]);
	second.resolve();
	await Promise.all([before, behind]);
	expect(ran).toEqual(["running", "beside", "before", "behind"]);
	expect(turns.size).toBe(0);
});
