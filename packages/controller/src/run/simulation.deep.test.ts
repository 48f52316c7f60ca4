import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

const seeds = Number(process.env.PLINTH_SEEDS ?? 5_000);

describe("a controller under a seeded scheduler", () => {
	it(`keeps its promises over ${seeds} seeds`, async () => {
		for (let seed = 1_000; seed < 1_000 + seeds; seed++) {
			const { violations } = await simulate(seed);
			expect({ seed, violations }).toEqual({ seed, violations: [] });
		}
	});
});
