import { describe, expect, it } from "vitest";
import { plantedFaults } from "./planted-faults.fixture.ts";
import { simulate } from "./simulation.fixture.ts";

describe("two lagging servers, one without the type", () => {
	it("remove units only when they are empty, and remove all that are marked", async () => {
		let removed = 0;
		for (let seed = 1; seed <= 12; seed++) {
			const result = await simulate(seed);
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			removed += result.removed;
		}
		expect(removed).toBeGreaterThan(50);
	});

	it.each(plantedFaults)("are caught when %s", async (fault) => {
		const caught = / is removed, and holds | is created in a unit that is being deleted$/;
		for (let seed = 1; seed <= 60; seed++) {
			const { violations } = await simulate(seed, fault);
			if (violations.some((violation) => caught.test(violation))) {
				return;
			}
		}
		throw new Error("no run has detected the fault");
	});
});
