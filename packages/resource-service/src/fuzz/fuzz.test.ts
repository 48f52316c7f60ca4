import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { fuzz } from "./run-fuzz.fixture.ts";

it("answers random and bent requests over a port, and none with a fault of the server", async () => {
	await forEachSeed(1, async (seed) => {
		const { answers, faults } = await fuzz(seed, 1_000);
		expect(faults).toEqual([]);
		expect([...answers.keys()]).toEqual(expect.arrayContaining(["ok", "invalid_argument"]));
	});
});
