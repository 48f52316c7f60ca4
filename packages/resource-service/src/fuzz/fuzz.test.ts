import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { fuzz } from "./run-fuzz.fixture.ts";

it("handles random and malformed requests over a port without an internal error", async () => {
	await forEachSeed(1, async (seed) => {
		const { responses, faults } = await fuzz(seed, 400);
		expect(faults).toEqual([]);
		expect([...responses.keys()]).toEqual(expect.arrayContaining(["ok", "invalid_argument"]));
	});
});
