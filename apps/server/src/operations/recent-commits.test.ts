import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { durationBoundsMs, durationQuantile, RecentCommits } from "./recent-commits.ts";

/** The counts of buckets, by the upper bounds of those that are not empty. */
function byBound(durations: readonly number[]): Readonly<Record<string, number>> {
	const entries = durations.map((count, at) => [String(durationBoundsMs[at]), count] as const);
	return Object.fromEntries(entries.filter(([, count]) => count > 0));
}

function commits() {
	const clock = new FakeClock();
	const recent = new RecentCommits(clock);
	return { clock, recent, commit: (ms: number) => recent.committed(ms, clock.monotonic()) };
}

describe("the commits of the last minute", () => {
	it("are counted by their durations, and by the writes that they share", () => {
		const { recent, commit } = commits();
		for (const ms of [0, 0.1, 0.11, 5, 7, 10, 4_999, 5_001, 90_000]) {
			commit(ms);
		}
		recent.written(7);
		recent.written(2);
		const { durations, ...batches } = recent.counts();
		expect(durations).toHaveLength(durationBoundsMs.length + 1);
		expect(byBound(durations)).toEqual({ "0.1": 2, "0.2": 1, 5: 1, 10: 2, 5000: 1, undefined: 2 });
		expect(batches).toEqual({ batches: 2, batchedCommits: 9 });
	});

	it("are forgotten after 60 to 70 s, whether or not there are others", () => {
		for (const others of [false, true]) {
			const { clock, recent, commit } = commits();
			clock.advance(9_999);
			commit(1);
			recent.written(1);
			for (let second = 0; second < 60; second += 1) {
				clock.advance(1_000);
				if (others) {
					commit(100);
				}
			}
			expect(byBound(recent.counts().durations)).toMatchObject({ 1: 1 });
			clock.advance(10_000);
			const { durations, batches } = recent.counts();
			expect(byBound(durations)).toEqual(others ? { 100: expect.any(Number) } : {});
			expect(batches).toBe(0);
		}
	});

	it("do not come back after a long time without any", () => {
		const { clock, recent, commit } = commits();
		commit(1);
		clock.advance(70_000);
		commit(2);
		expect(byBound(recent.counts().durations)).toEqual({ 2: 1 });
		clock.advance(700_000);
		expect(byBound(recent.counts().durations)).toEqual({});
	});
});

describe("a quantile of durations", () => {
	const counted = (...all: readonly number[]) => {
		const { recent, commit } = commits();
		for (const ms of all) {
			commit(ms);
		}
		return recent.counts().durations;
	};

	it("is in the bucket of the duration", () => {
		const durations = counted(...new Array<number>(98).fill(1.5), 300, 400);
		expect(durationQuantile(durations, 0.5)).toBeCloseTo(1 + 50 / 98);
		expect(durationQuantile(durations, 0.99)).toBeCloseTo(350);
		expect(durationQuantile(durations, 1)).toBe(500);
		expect(durationQuantile(counted(0.05), 0.5)).toBeCloseTo(0.05);
	});

	it("is at most the last bound, and nothing without durations", () => {
		expect(durationQuantile(counted(60_000), 0.99)).toBe(5_000);
		expect(durationQuantile(counted(), 0.99)).toBeUndefined();
		expect(durationQuantile([], 0.5)).toBeUndefined();
	});
});
