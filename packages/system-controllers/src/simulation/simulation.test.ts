import { SeededEventLoop } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { type PlantedFault, plantedFaults, plantedOwnerFaults } from "./planted-faults.fixture.ts";
import { type SimulationOptions, simulate } from "./simulation.fixture.ts";

describe("two lagging servers, one without the type", () => {
	it("remove units only when they are empty, and remove all that are marked", async () => {
		let removed = 0;
		for (let seed = 1; seed <= 16; seed++) {
			const result = await simulate(seed);
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			removed += result.removed;
		}
		expect(removed).toBeGreaterThan(50);
	});

	it("remove tombstones only when the owner owns nothing, and leave no orphans", async () => {
		let removed = 0;
		for (let seed = 1; seed <= 16; seed++) {
			const result = await simulate(seed, { users: "owners" });
			expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
			removed += result.removedTombstones;
		}
		expect(removed).toBeGreaterThan(50);
	});

	it.each(["tenants", "owners"] as const)(
		"do so beside loops that never wait, a hot resource and many watchers (%s)",
		async (users) => {
			for (let seed = 1; seed <= 3; seed++) {
				const { violations, longestMs } = await simulate(seed, { users, crowd: {} });
				expect({ seed, violations }).toEqual({ seed, violations: [] });
				expect(longestMs).toBeLessThan(SeededEventLoop.longestAllowedMs);
			}
		},
	);

	it("are caught when loops have no budget", async () => {
		const { longestMs } = await simulate(1, { crowd: { hasBudget: false } });
		expect(longestMs).toBeGreaterThan(SeededEventLoop.longestAllowedMs);
	});

	it.each(plantedFaults)("are caught when %s", async (fault) => {
		await expectCaught(
			{ users: "tenants", fault },
			/ is removed, and holds | is created in a unit that is being deleted$/,
		);
	});

	it.each(plantedOwnerFaults)("are caught when %s", async (fault) => {
		await expectCaught(
			{ users: "owners", fault },
			/ is created for a deleted owner$|: the tombstone of .* is removed before /,
		);
	});
});

async function expectCaught(
	options: SimulationOptions & { readonly fault: PlantedFault },
	caught: RegExp,
): Promise<void> {
	for (let seed = 1; seed <= 60; seed++) {
		const { violations } = await simulate(seed, options);
		if (violations.some((violation) => caught.test(violation))) {
			return;
		}
	}
	throw new Error("no run has detected the fault");
}
