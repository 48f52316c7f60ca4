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
