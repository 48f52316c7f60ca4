import { describe, expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { SkewedClock } from "./skewed-clock.ts";

describe("SkewedClock", () => {
	it("has another time of day, and runs faster or slower", () => {
		const clock = new FakeClock({ nowMs: 1_000 });
		const skewed = new SkewedClock(clock, { offsetMs: -600, rate: 2 });
		expect(skewed.now()).toBe(400);
		let firedAt = Number.NaN;
		skewed.setTimer(100, () => {
			firedAt = skewed.monotonic();
		});
		clock.advance(49);
		expect(firedAt).toBeNaN();
		clock.advance(2);
		expect(firedAt).toBeGreaterThanOrEqual(100);
		expect(firedAt).toBeLessThan(100.1);
	});

	it("holds back timers while suspended, and drops those canceled meanwhile", () => {
		const clock = new FakeClock();
		const skewed = new SkewedClock(clock, {});
		const fired: string[] = [];
		skewed.setTimer(10, () => fired.push("late"));
		const canceled = skewed.setTimer(10, () => fired.push("canceled"));
		skewed.suspend();
		clock.advance(1_000);
		expect(fired).toEqual([]);
		canceled.cancel();
		skewed.resume();
		expect(fired).toEqual(["late"]);
	});
});
