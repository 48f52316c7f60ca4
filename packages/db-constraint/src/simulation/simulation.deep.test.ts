import { describe, expect, it } from "vitest";
import { brokenSeeds } from "./seeds.fixture.ts";

describe("deployments with crashing servers and lost messages", () => {
	it("keep the promises in 2,000 seeds", async () => {
		expect(await brokenSeeds(2_000)).toEqual([]);
	});
});
