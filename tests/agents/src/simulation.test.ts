import { describe, expect, it } from "vitest";
import { plantedFaults } from "./planted-faults.ts";
import { type SimulationCounts, simulate } from "./simulation.ts";

/** How many runs a planted fault may take to be found. */
const runs = 40;

describe("two clusters behind agents, under a seeded scheduler", () => {
	it("show their clients one history, and copy what is exported and nothing else", async () => {
		const total: Partial<SimulationCounts> = {};
		for (let seed = 1; seed <= 6; seed += 1) {
			const { violations, counts } = await simulate(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
			for (const [key, count] of Object.entries(counts)) {
				const name = key as keyof SimulationCounts;
				total[name] = (total[name] ?? 0) + count;
			}
		}
		// The simulation has covered its events.
		expect(total.acknowledged).toBeGreaterThan(100);
		expect(total.unknown).toBeGreaterThan(20);
		expect(total.reads).toBeGreaterThan(50);
		expect(total.events).toBeGreaterThan(1_000);
		expect(total.moved).toBeGreaterThan(20);
		expect(total.retried).toBeGreaterThan(10);
		expect(total.repeatedWrites).toBeGreaterThan(0);
		expect(total.exported).toBeGreaterThan(100);
		expect(total.restores).toBeGreaterThan(0);
	});

	it("do the same again for the same seed", async () => {
		const [first, second] = [await simulate(3, { steps: 50 }), await simulate(3, { steps: 50 })];
		expect(second).toEqual(first);
	});

	it.each(plantedFaults)("are found to fail if %s", async (fault) => {
		for (let seed = 1; seed <= runs; seed += 1) {
			const { violations } = await simulate(seed, { fault });
			if (violations.length > 0) {
				return;
			}
		}
		throw new Error(`no run has found the fault in ${runs} runs`);
	});
});
