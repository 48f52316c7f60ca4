import { seedsOr } from "@plinth/test-support/seeds";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

const seeds = seedsOr(5_000, 1_000);

describe("a controller under a seeded scheduler", () => {
	it(`keeps its promises over ${seeds.length} seeds`, async () => {
		for (const seed of seeds) {
			const { violations } = await simulate(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
		}
	});
});
