import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("a controller under a seeded scheduler", () => {
	it("keeps its promises over many seeds", () =>
		forEachSeed(260, async (seed) => {
			const { violations } = await simulate(seed);
			expect(violations).toEqual([]);
		}));
});
