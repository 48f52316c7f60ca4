import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { ProcessProbe } from "./process-probe.ts";

describe("a process probe", () => {
	it("measures the event loop only for a while after a reading", async () => {
		const clock = new FakeClock();
		using probe = new ProcessProbe(clock);
		expect(clock.nextTimerMs()).toBeUndefined();
		expect(probe.read().eventLoopDelayMs).toBeUndefined();
		let delayMs: number | undefined;
		while (delayMs === undefined) {
			await new Promise((resolve) => setTimeout(resolve, 30));
			delayMs = probe.read().eventLoopDelayMs;
		}
		expect(delayMs).toBeGreaterThan(0);
		clock.advance(60_000);
		expect(clock.nextTimerMs()).toBeUndefined();
		expect(probe.read()).toMatchObject({ eventLoopDelayMs: undefined, uptimeMs: 60_000 });
	});
});
