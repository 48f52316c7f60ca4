import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("deployments whose servers crash and whose messages get lost", () => {
	it("keep the promises in many worlds", () =>
		forEachSeed(250, async (seed) => {
			expect((await simulate(seed)).violation).toBeUndefined();
		}));
});
