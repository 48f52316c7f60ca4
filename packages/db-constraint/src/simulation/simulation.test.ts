import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("deployments with crashing servers and lost messages", () => {
	it("keep the promises, and settle", () =>
		forEachSeed(15, async (seed) => {
			expect((await simulate(seed)).violation).toBeUndefined();
		}));

	it("keep them when one is restored from a backup, or its Deployment is deleted", async () => {
		const losses = new Set<string>();
		for (const seed of [0, 2, 3, 4, 5, 6]) {
			const outcome = await simulate(seed, { losses: 1 });
			// The meta deployment may be restored besides.
			const lost = outcome.losses.filter((each) => !each.startsWith("meta deployment"));
			expect(lost).toHaveLength(1);
			expect(outcome.violation).toBeUndefined();
			losses.add(lost.join());
		}
		expect(losses.size).toBeGreaterThan(1);
	});

	it("behave identically with the same seed", async () => {
		const once = await simulate(7, { isTracing: true });
		const again = await simulate(7, { isTracing: true });
		expect(again.trace).toEqual(once.trace);
		expect(once.trace.length).toBeGreaterThan(100);
	});
});
