import { expect, it } from "vitest";
import { forEachSeed } from "../seeds.fixture.ts";
import { fuzz } from "./run-fuzz.fixture.ts";

it("answers 100,000 requests without a fault, and holds nothing of them", async () => {
	await forEachSeed(1, async (seed) => {
		const { answers, faults, heap } = await fuzz(seed, 100_000);
		expect(faults).toEqual([]);
		expect([...answers.values()].reduce((sum, count) => sum + count)).toBe(100_000);
		const [atOneTenth, atEnd] = heap;
		expect(atEnd).toBeLessThan(atOneTenth * 1.1);
	});
});
