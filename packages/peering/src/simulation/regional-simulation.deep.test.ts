import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { simulateRegions } from "./regional-simulation.fixture.ts";

it("two regions have what the other one offers when faults end, over many seeds", () =>
	forEachSeed(100, async (seed) => {
		const { violations } = await simulateRegions(seed);
		expect(violations).toEqual([]);
	}));
