import { describe, expect, it } from "vitest";
import { type PlantedFault, simulate } from "./simulation.fixture.ts";

describe("processes that compete for a lease over a bad network", () => {
	it("never hold it together, and never write after a later holder", async () => {
		let [holds, lost] = [0, 0];
		for (let seed = 1; seed <= 60; seed++) {
			const result = await simulate(seed);
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			holds += result.holds;
			lost += result.lost;
		}
		// Otherwise the simulation shows little.
		expect(holds).toBeGreaterThan(600);
		expect(lost).toBeGreaterThan(60);
	});

	it.each<PlantedFault>(["grants-at-start", "expires-early", "renews-lost", "repeats-fences"])(
		"are caught with the fault %s",
		async (fault) => {
			for (let seed = 1; seed <= 200; seed++) {
				const { violations } = await simulate(seed, fault);
				if (violations.length > 0) {
					return;
				}
			}
			expect.fail(`no seed has found ${fault}`);
		},
	);
});
