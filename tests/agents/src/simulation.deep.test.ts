import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { simulate } from "./simulation.ts";

it("two clusters behind agents show one history and copy what is exported, over many seeds", () =>
	forEachSeed(30, async (seed) => {
		const { violations } = await simulate(seed);
		expect(violations).toEqual([]);
	}));
