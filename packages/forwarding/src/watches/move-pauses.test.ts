import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { MovePauses } from "./move-pauses.ts";

function start() {
	const clock = new FakeClock();
	return { clock, pauses: new MovePauses(clock, seededRandom(1), 30_000) };
}

describe("the pauses between attempts to continue a watch", () => {
	it("begin with none, grow, and end after the limit", () => {
		const { clock, pauses } = start();
		clock.advance(5_000);
		const waited: number[] = [];
		for (;;) {
			const pauseMs = pauses.failed("cut");
			if (pauseMs === undefined) {
				break;
			}
			waited.push(pauseMs);
			clock.advance(pauseMs);
			pauses.begun();
		}
		expect(waited[0]).toBe(0);
		expect(Math.max(...waited)).toBeLessThanOrEqual(3_000);
		expect(waited.length).toBeGreaterThan(10);
		expect(waited.length).toBeLessThan(50);
	});

	it("are not left out after a stream that has failed at once", () => {
		const { clock, pauses } = start();
		clock.advance(10);
		expect(pauses.failed("cut")).toBeGreaterThan(0);
		pauses.begun();
		pauses.progressed();
		expect(pauses.failed("cut")).toBeGreaterThan(50);
	});

	it("do not end while servers continue the watch for some seconds each, even if nothing happens", () => {
		const { clock, pauses } = start();
		for (let seconds = 0; seconds < 300; seconds += 5) {
			clock.advance(5_000);
			expect(pauses.failed("cut")).toBe(0);
			pauses.begun();
		}
	});

	it.each([
		["refused", 5_000],
		["refused-again", 1_500],
	] as const)("end although servers take long until the watch is %s", (failure, ms) => {
		const { clock, pauses } = start();
		let moves = 0;
		for (let pauseMs: number | undefined = 0; pauseMs !== undefined; moves += 1) {
			clock.advance(pauseMs);
			pauses.begun();
			if (failure === "refused-again") {
				pauses.responded();
			}
			clock.advance(ms);
			pauseMs = pauses.failed(failure);
		}
		expect(moves).toBeLessThan(25);
	});

	it("do not end if a server refuses what it has continued for some time", () => {
		const { clock, pauses } = start();
		for (let hour = 0; hour < 3; hour += 1) {
			pauses.responded();
			clock.advance(3_000);
			expect(pauses.failed("refused")).toBe(0);
			pauses.begun();
			clock.advance(20_000);
		}
	});

	it("begin again after a stream that has lasted, even if nothing has arrived on it", () => {
		const { clock, pauses } = start();
		for (let day = 0; day < 3; day += 1) {
			clock.advance(86_400_000);
			expect(pauses.failed("cut")).toBe(0);
			pauses.begun();
		}
	});
});
