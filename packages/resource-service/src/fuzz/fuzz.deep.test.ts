import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { fuzz } from "./run-fuzz.fixture.ts";

it("handles 7,000 requests without a fault or a leak", async () => {
	await forEachSeed(1, async (seed) => {
		const { responses, faults, heap } = await fuzz(seed, 4_000);
		expect(faults).toEqual([]);
		expect([...responses.values()].reduce((sum, count) => sum + count)).toBe(4_000);
		const [atOneTenth, atEnd] = heap;
		expect(atEnd).toBeLessThan(1.2 * atOneTenth);
	});
});
