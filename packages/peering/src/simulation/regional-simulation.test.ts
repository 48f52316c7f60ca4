import { describe, expect, it } from "vitest";
import { regionalFaults } from "./regional-faults.fixture.ts";
import { simulateRegions } from "./regional-simulation.fixture.ts";

describe("two regions that hold copies of each other, under a seeded scheduler", () => {
	it("have what the other one offers when faults end, and nothing else has left them", async () => {
		const total = { copied: 0, removed: 0, policies: 0, restores: 0 };
		for (let seed = 1; seed <= 12; seed += 1) {
			const { violations, counts } = await simulateRegions(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
			for (const [key, count] of Object.entries(counts)) {
				total[key as keyof typeof total] += count;
			}
		}
		// The simulation has covered its events.
		expect(total.copied).toBeGreaterThan(200);
		expect(total.removed).toBeGreaterThan(20);
		expect(total.policies).toBeGreaterThan(50);
		expect(total.restores).toBeGreaterThan(5);
	});

	it.each(regionalFaults)("are caught when %s", async (fault) => {
		for (let seed = 1; seed <= 40; seed += 1) {
			const { violations } = await simulateRegions(seed, fault);
			if (violations.length > 0) {
				return;
			}
		}
		throw new Error("no run has detected the fault");
	});
});
