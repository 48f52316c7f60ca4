import { describe, expect, it } from "vitest";
import { Backoff, backoffDelayMs } from "./backoff.ts";
import { FakeClock } from "./testing/fake-clock.ts";

describe("backoffDelayMs", () => {
	it("doubles with each failure, up to the maximum", () => {
		const policy = { baseMs: 5, maxMs: 50 };
		const delays = [1, 2, 3, 4, 5, 6].map((failures) => backoffDelayMs(policy, failures));
		expect(delays).toEqual([5, 10, 20, 40, 50, 50]);
	});

	it("stays at the maximum however many failures there are", () => {
		expect(backoffDelayMs({ baseMs: 5, maxMs: 50 }, 1_000_000)).toBe(50);
	});
});

describe("Backoff", () => {
	it("waits longer after each failure, on the clock it was given", async () => {
		const clock = new FakeClock();
		const backoff = new Backoff({ baseMs: 100, maxMs: 300, clock });
		const waits: number[] = [];
		for (let attempt = 0; attempt < 4; attempt++) {
			const startMs = clock.monotonic();
			const waited = backoff.wait();
			clock.advanceToTimer();
			await waited;
			waits.push(clock.monotonic() - startMs);
		}
		expect(waits).toEqual([100, 200, 300, 300]);
	});

	it("begins with the first delay again after a reset", () => {
		const backoff = new Backoff({ baseMs: 100, maxMs: 10_000, clock: new FakeClock() });
		expect([backoff.nextDelayMs(), backoff.nextDelayMs()]).toEqual([100, 200]);
		backoff.reset();
		expect(backoff.nextDelayMs()).toBe(100);
	});

	it("multiplies each delay by one random factor from 0.5 to 1.5, after the maximum", () => {
		const draws = [0, 0.25, 0.5, 0.999];
		const random = { next: () => draws.shift() ?? 0 };
		const backoff = new Backoff({ baseMs: 100, maxMs: 200, clock: new FakeClock(), random });
		const delays = [1, 2, 3, 4].map(() => backoff.nextDelayMs());
		expect(delays).toEqual([50, 150, 200, 200 * 1.499]);
		expect(draws).toEqual([]);
	});

	it("rejects with the reason of the signal, and leaves no timer", async () => {
		const clock = new FakeClock();
		const abort = new AbortController();
		const waited = new Backoff({ baseMs: 100, maxMs: 200, clock }).wait(abort.signal);
		abort.abort(new Error("stopped"));
		await expect(waited).rejects.toThrow("stopped");
		expect(clock.nextTimerMs()).toBeUndefined();
	});
});
