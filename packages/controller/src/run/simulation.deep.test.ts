import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("a controller under a seeded scheduler", () => {
	it.each(["singleton", "sharded"] as const)(
		"keeps its promises over many seeds as %s",
		(placement) =>
			forEachSeed(260, async (seed) => {
				const { violations } = await simulate(seed, { placement });
				expect(violations).toEqual([]);
			}),
	);
});
