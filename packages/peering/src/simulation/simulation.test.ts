import { describe, expect, it } from "vitest";
import { plantedFaults } from "./planted-faults.fixture.ts";
import { simulate } from "./simulation.fixture.ts";

describe("three clusters that copy from each other, under a seeded scheduler", () => {
	it("have equal copies when faults end, and nothing else has left them", async () => {
		const total = { copied: 0, unchanged: 0, snapshots: 0, restores: 0 };
		for (let seed = 1; seed <= 12; seed += 1) {
			const { violations, counts } = await simulate(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
			for (const [key, count] of Object.entries(counts)) {
				total[key as keyof typeof total] += count;
			}
		}
		// The simulation has covered its events.
		expect(total.copied).toBeGreaterThan(200);
		expect(total.unchanged).toBeGreaterThan(10);
		expect(total.snapshots).toBeGreaterThan(50);
		expect(total.restores).toBeGreaterThan(5);
	});

	it.each(plantedFaults)("are caught when %s", async (fault) => {
		for (let seed = 1; seed <= 40; seed += 1) {
			const { violations } = await simulate(seed, fault);
			if (violations.length > 0) {
				return;
			}
		}
		throw new Error("no run has detected the fault");
	});
});
