import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

it("three clusters have equal copies when faults end, over many seeds", () =>
	forEachSeed(100, async (seed) => {
		const { violations } = await simulate(seed);
		expect(violations).toEqual([]);
	}));
