import { expect, it } from "vitest";
import { ReconcileTally } from "./reconcile-tally.ts";

it("counts reconciles by duration, in buckets that double", () => {
	const tally = new ReconcileTally();
	for (const tookMs of [0, 0.99, 1, 1.99, 2, 3.99, 32_768, 65_535, 65_536, 1e9]) {
		tally.ended("succeeded", tookMs);
	}
	tally.ended("failed", 4);
	const { durations, totalMs, longestMs } = tally.counts();
	expect(durations).toEqual([2, 2, 2, 1, ...new Array(12).fill(0), 2, 2]);
	expect(durations.reduce((sum, each) => sum + each, 0)).toBe(11);
	expect([totalMs > 1e9, longestMs]).toEqual([true, 1e9]);
});
