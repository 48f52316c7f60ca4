import { getEventListeners } from "node:events";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { WakeUp } from "./wake-up.ts";

/** A loop that waits for a minute each time, and how often it was woken. */
function waiting() {
	const clock = new FakeClock();
	const wakeUp = new WakeUp(clock);
	const end = new AbortController();
	const woken = { times: 0 };
	const loop = async () => {
		for (;;) {
			await wakeUp.wait(60_000, end.signal);
			woken.times += 1;
		}
	};
	return { clock, wakeUp, end, woken, ended: loop().catch((reason: unknown) => reason) };
}

describe("a loop that waits", () => {
	it("is woken by the delay and at once, and waits again", async () => {
		const { clock, wakeUp, woken } = waiting();
		await clock.advanceAsync(59_999);
		expect(woken.times).toBe(0);
		await clock.advanceAsync(1);
		await clock.advanceAsync(0);
		expect(woken.times).toBe(1);
		wakeUp.wake();
		await clock.advanceAsync(0);
		expect(woken.times).toBe(2);
	});

	it("waits once less, if it was woken before", async () => {
		const clock = new FakeClock();
		const wakeUp = new WakeUp(clock);
		const { signal } = new AbortController();
		wakeUp.wake();
		await wakeUp.wait(60_000, signal);
		let isDone = false;
		void wakeUp.wait(60_000, signal).then(() => {
			isDone = true;
		});
		await clock.advanceAsync(1_000);
		expect(isDone).toBe(false);
	});

	it("is woken soon once a second, however often", async () => {
		const { clock, wakeUp, woken } = waiting();
		for (let times = 0; times < 1_000; times += 1) {
			wakeUp.wakeSoon();
			await clock.advanceAsync(5);
		}
		expect(woken.times).toBe(6);
		await clock.advanceAsync(10_000);
		expect(woken.times).toBe(6);
	});

	it("ends with its signal, of which it keeps no listeners", async () => {
		const { clock, wakeUp, end, ended } = waiting();
		await clock.advanceAsync(0);
		const listeners = getEventListeners(end.signal, "abort").length;
		for (let times = 0; times < 100; times += 1) {
			wakeUp.wake();
			await clock.advanceAsync(0);
		}
		expect(getEventListeners(end.signal, "abort")).toHaveLength(listeners);
		const reason = new Error("the lease is lost");
		end.abort(reason);
		expect(await ended).toBe(reason);
		expect(clock.nextTimerMs()).toBeUndefined();
	});
});
