import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RateLimiter } from "./rate-limiter.ts";

describe("a rate limiter", () => {
	it("grants a burst, and then as many as come in", async () => {
		const clock = new FakeClock();
		const limiter = new RateLimiter({ perSecond: 10, burst: 3 }, clock);
		const take = (times: number) => Array.from({ length: times }, () => limiter.take("a"));
		expect(take(4)).toEqual([true, true, true, false]);
		await clock.advance(99);
		expect(take(1)).toEqual([false]);
		await clock.advance(1);
		expect(take(2)).toEqual([true, false]);
		await clock.advance(60_000);
		expect(take(4)).toEqual([true, true, true, false]);
	});

	it("counts each key for itself", () => {
		const limiter = new RateLimiter({ perSecond: 1, burst: 1 }, new FakeClock());
		expect([limiter.take("a"), limiter.take("a"), limiter.take("b")]).toEqual([true, false, true]);
	});

	it("never grants more than its burst and its rate, and forgets idle keys", async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), waitMs: fc.nat(300) }), {
					minLength: 1,
					maxLength: 60,
				}),
				async (steps) => {
					const clock = new FakeClock();
					const limiter = new RateLimiter({ perSecond: 20, burst: 5 }, clock);
					const granted = new Map<string, number>();
					for (const { key, waitMs } of steps) {
						await clock.advance(waitMs);
						if (limiter.take(key)) {
							granted.set(key, (granted.get(key) ?? 0) + 1);
						}
						const most = 5 + (clock.monotonic() / 1_000) * 20;
						expect(granted.get(key) ?? 0).toBeLessThanOrEqual(most);
					}
					await clock.advance(10_000);
					for (let call = 0; call < 3; call += 1) {
						limiter.take("other");
					}
					expect(limiter.size).toBe(1);
				},
			),
		);
	});
});
