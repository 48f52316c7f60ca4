import { describe, expect, it } from "vitest";
import { brokenSeeds } from "./seeds.fixture.ts";

describe("deployments whose servers crash and whose messages get lost", () => {
	it("keep the promises in 2,000 worlds", async () => {
		expect(await brokenSeeds(2_000)).toEqual([]);
	});
});
