import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { Deadlines } from "./deadlines.ts";
import { FakeClock, seededRandom } from "./testing/index.ts";

describe("deadlines", () => {
	it("expire within 4 ms and never early, unless they are canceled, in any order", async () => {
		await forEachSeed(50, async (seed) => {
			const random = seededRandom(seed);
			const clock = new FakeClock();
			const deadlines = new Deadlines(clock);
			const expired = new Map<number, number>();
			const set = Array.from({ length: 100 }, (_, index) => {
				const atMs = clock.monotonic() + 2 ** (random.next() * 22) - 1;
				const deadline = deadlines.set(atMs, () => expired.set(index, clock.monotonic()));
				return { atMs, deadline, isCanceled: random.next() < 0.3 };
			});
			for (const { deadline, isCanceled } of set) {
				if (isCanceled) {
					deadline.cancel();
				}
			}
			clock.advance(2 ** 23);
			for (const [index, { atMs, isCanceled }] of set.entries()) {
				const firedMs = expired.get(index);
				expect(firedMs === undefined).toBe(isCanceled);
				if (firedMs !== undefined) {
					expect(firedMs).toBeGreaterThanOrEqual(atMs);
					expect(firedMs).toBeLessThanOrEqual(atMs + 4);
				}
			}
		});
	});

	it("expires, like those after it, if it is reached while it is set", () => {
		const clock = new FakeClock();
		const deadlines = new Deadlines(clock);
		const expired: string[] = [];
		clock.advance(1);
		deadlines.set(clock.monotonic() - 0.1, () => expired.push("reached"));
		deadlines.set(clock.monotonic() + 10, () => expired.push("soon"));
		deadlines.set(clock.monotonic() + 100, () => expired.push("later"));
		clock.advance(200);
		expect(expired).toEqual(["reached", "soon", "later"]);
	});

	it.each([Number.POSITIVE_INFINITY, Number.NaN, Number.MAX_VALUE])(
		"are never reached at %d, and those beside it are",
		(atMs) => {
			const clock = new FakeClock();
			const deadlines = new Deadlines(clock);
			const expired: string[] = [];
			deadlines.set(atMs, () => expired.push("never")).cancel();
			deadlines.set(atMs, () => expired.push("never"));
			deadlines.set(clock.monotonic() + 10, () => expired.push("soon"));
			deadlines.set(clock.monotonic() + 1_000, () => expired.push("later"));
			clock.advance(2_000);
			expect(expired).toEqual(["soon", "later"]);
		},
	);
});
