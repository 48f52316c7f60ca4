import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("deployments with crashing servers and lost messages", () => {
	it("keep the promises, and settle", () =>
		forEachSeed(15, async (seed) => {
			expect((await simulate(seed)).violation).toBeUndefined();
		}));

	it("behave identically with the same seed", async () => {
		const once = await simulate(7, true);
		const again = await simulate(7, true);
		expect(again.trace).toEqual(once.trace);
		expect(once.trace.length).toBeGreaterThan(100);
	});
});
