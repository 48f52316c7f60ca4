import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sleep, systemClock } from "./clock.ts";
import { FakeClock } from "./testing/index.ts";

describe("systemClock", () => {
	beforeEach(() => {
		vi.useFakeTimers();
	});
	afterEach(() => {
		vi.useRealTimers();
	});

	it("fires a timer once, when it is due", () => {
		const fired = vi.fn();
		systemClock.setTimer(1000, fired);
		vi.advanceTimersByTime(999);
		expect(fired).not.toHaveBeenCalled();
		vi.advanceTimersByTime(100_000);
		expect(fired).toHaveBeenCalledTimes(1);
	});

	it("counts a negative delay as none", () => {
		const fired = vi.fn();
		systemClock.setTimer(-5, fired);
		vi.advanceTimersByTime(1);
		expect(fired).toHaveBeenCalledTimes(1);
	});

	it("chains delays beyond what a platform timer holds", () => {
		const fired = vi.fn();
		const delayMs = 2 ** 31 * 2.5;
		systemClock.setTimer(delayMs, fired);
		vi.advanceTimersByTime(delayMs - 1);
		expect(fired).not.toHaveBeenCalled();
		vi.advanceTimersByTime(2);
		expect(fired).toHaveBeenCalledTimes(1);
	});

	it("never fires after Infinity, nor what was canceled, in the middle of a chain too", () => {
		const fired = vi.fn();
		systemClock.setTimer(Number.POSITIVE_INFINITY, fired);
		const timer = systemClock.setTimer(2 ** 31 * 2, fired);
		vi.advanceTimersByTime(2 ** 31);
		timer.cancel();
		timer.cancel();
		vi.advanceTimersByTime(2 ** 33);
		expect(fired).not.toHaveBeenCalled();
	});
});

describe("sleep", () => {
	it("resolves when the time has come, and leaves no listener behind", async () => {
		const clock = new FakeClock();
		const { signal } = new AbortController();
		const remove = vi.spyOn(signal, "removeEventListener");
		const slept = sleep(clock, 10, signal);
		clock.advance(10);
		await slept;
		expect(remove).toHaveBeenCalledTimes(1);
	});

	it("rejects with the reason of the abort, and cancels its timer", async () => {
		const clock = new FakeClock();
		const controller = new AbortController();
		const slept = sleep(clock, 10, controller.signal);
		controller.abort(new Error("enough"));
		await expect(slept).rejects.toThrow("enough");
		expect(clock.nextTimerMs()).toBeUndefined();
		await expect(sleep(clock, 10, controller.signal)).rejects.toThrow("enough");
	});
});

describe("FakeClock", () => {
	it("fires timers in the order of their due times, each at its own time", () => {
		const clock = new FakeClock();
		const seen: string[] = [];
		clock.setTimer(20, () => seen.push(`b at ${clock.monotonic()}`));
		clock.setTimer(10, () => {
			seen.push(`a at ${clock.monotonic()}`);
			clock.setTimer(5, () => seen.push(`c at ${clock.monotonic()}`));
		});
		clock.setTimer(20, () => seen.push(`d at ${clock.monotonic()}`));
		clock.advance(20);
		expect(seen).toEqual(["a at 10", "c at 15", "b at 20", "d at 20"]);
	});

	it("lets the wall clock jump without touching monotonic time", () => {
		const clock = new FakeClock({ nowMs: 1000 });
		clock.advance(5);
		clock.jump(-500);
		expect([clock.now(), clock.monotonic()]).toEqual([505, 5]);
	});

	it("moves the wall clock by what it was advanced, whatever fractions its timers add up to", () => {
		const clock = new FakeClock();
		const startMs = clock.now();
		for (let third = 1; third < 10_000; third++) {
			clock.setTimer(third / 3, () => {});
		}
		clock.advance(5_000);
		expect(clock.now() - startMs).toBe(5_000);
	});

	it("lets promises settle between timers", async () => {
		const clock = new FakeClock();
		const seen: number[] = [];
		const run = (async () => {
			for (let round = 0; round < 3; round += 1) {
				await sleep(clock, 10);
				seen.push(clock.monotonic());
			}
		})();
		await clock.advanceAsync(30);
		await run;
		expect(seen).toEqual([10, 20, 30]);
	});
});
