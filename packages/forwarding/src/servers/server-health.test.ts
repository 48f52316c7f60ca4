import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { defaultHealthOptions, ServerHealth } from "./server-health.ts";

/** A server whose checks have the result that the test sets; their times are recorded. */
function start(result: { ready: boolean | "never" }) {
	const clock = new FakeClock();
	const checks: number[] = [];
	const events: string[] = [];
	const health = new ServerHealth(
		defaultHealthOptions,
		{ clock, random: seededRandom(1) },
		{
			ejected: (reason) => events.push(`ejected: ${reason}`),
			returned: () => events.push("returned"),
		},
		async (signal) => {
			checks.push(clock.monotonic());
			if (result.ready === "never") {
				await new Promise((_, reject) =>
					signal.addEventListener("abort", () => reject(signal.reason)),
				);
			}
			if (result.ready !== true) {
				throw new Error("not ready");
			}
		},
	);
	health.start();
	return { clock, checks, events, health };
}

function pausesOf(times: readonly number[]): readonly number[] {
	return times.slice(1).map((time, index) => time - (times[index] ?? 0));
}

describe("the health of a server", () => {
	it("is unknown until the first check, and healthy after it", async () => {
		const { clock, events, health } = start({ ready: true });
		expect(health.state).toBe("unknown");
		await clock.advanceAsync(0);
		expect({ state: health.state, events }).toEqual({ state: "healthy", events: ["returned"] });
	});

	it("is checked with growing pauses while checks fail, and then regularly", async () => {
		const result = { ready: false };
		const { clock, checks, events } = start(result);
		await clock.advanceAsync(120_000);
		const pauses = pausesOf(checks);
		const { firstPauseMs, longestPauseMs } = defaultHealthOptions;
		expect(pauses[0]).toBeLessThanOrEqual(1.5 * firstPauseMs);
		expect(pauses[1]).toBeLessThanOrEqual(3 * firstPauseMs);
		expect(pauses.at(-1)).toBeGreaterThanOrEqual(0.5 * longestPauseMs);
		expect(Math.max(...pauses)).toBeLessThanOrEqual(1.5 * longestPauseMs);
		expect(events).toEqual(["ejected: not ready"]);
		result.ready = true;
		await clock.advanceAsync(30_000);
		expect(events).toEqual(["ejected: not ready", "returned"]);
		expect(pausesOf(checks).slice(-3)).toEqual([2_000, 2_000, 2_000]);
	});

	it("has longer pauses if it fails again soon, and short ones after it was well for a while", async () => {
		const result = { ready: true };
		const { clock, checks, health } = start(result);
		const pauseAfterFailure = async () => {
			health.connectionFailed("refused");
			const failedMs = clock.monotonic();
			const count = checks.length;
			while (checks.length === count) {
				await clock.advanceAsync(10);
			}
			return (checks.at(-1) ?? 0) - failedMs;
		};
		await clock.advanceAsync(0);
		const pauses: number[] = [];
		for (let count = 0; count < 6; count += 1) {
			pauses.push(await pauseAfterFailure());
		}
		expect(pauses.at(-1)).toBeGreaterThan(4 * (pauses[0] ?? 0));
		await clock.advanceAsync(defaultHealthOptions.forgivenAfterMs + 5_000);
		expect(await pauseAfterFailure()).toBeLessThan(1.5 * defaultHealthOptions.firstPauseMs + 20);
	});

	it("fails with two checks in a row that have no result", async () => {
		const result: { ready: boolean | "never" } = { ready: true };
		const { clock, events, health } = start(result);
		await clock.advanceAsync(0);
		events.length = 0;
		result.ready = "never";
		const { checkIntervalMs, checkTimeoutMs } = defaultHealthOptions;
		await clock.advanceAsync(checkIntervalMs + checkTimeoutMs);
		expect({ state: health.state, events }).toEqual({ state: "unknown", events: [] });
		await clock.advanceAsync(checkTimeoutMs + 500);
		expect(events).toEqual(["ejected: it did not respond to a health check in 3000 ms"]);
		expect(health.lastError).toContain("3000 ms");
	});

	it("keeps its calls while its checks succeed, however many calls get Unavailable", async () => {
		const { clock, checks, events, health } = start({ ready: true });
		await clock.advanceAsync(0);
		for (let count = 0; count < 1_000; count += 1) {
			health.wasUnavailable();
			expect(health).toMatchObject({ state: "healthy", isPreferred: false });
			await clock.advanceAsync(200);
		}
		await clock.advanceAsync(500);
		expect({ isPreferred: health.isPreferred, events }).toEqual({
			isPreferred: true,
			events: ["returned"],
		});
		expect(Math.min(...pausesOf(checks))).toBeGreaterThanOrEqual(500);
	});

	it("fails with the check that follows a response of Unavailable", async () => {
		const result = { ready: true };
		const { clock, events, health } = start(result);
		await clock.advanceAsync(1_000);
		result.ready = false;
		health.wasUnavailable();
		expect(health).toMatchObject({
			...{ state: "healthy", isPreferred: false },
			lastError: "it responded with Unavailable",
		});
		await clock.advanceAsync(0);
		expect({ state: health.state, events }).toEqual({
			state: "ejected",
			events: ["returned", "ejected: not ready"],
		});
	});

	it.each([
		["a lost connection", (health: ServerHealth) => health.connectionLost("lost")],
		["GOAWAY", (health: ServerHealth) => health.goawayReceived()],
	])("is unknown after %s, until a check that follows soon", async (_name, happens) => {
		const { clock, checks, events, health } = start({ ready: true });
		await clock.advanceAsync(1_000);
		const count = checks.length;
		happens(health);
		expect(health.state).toBe("unknown");
		await clock.advanceAsync(0);
		expect({ state: health.state, checks: checks.length - count }).toEqual({
			state: "healthy",
			checks: 1,
		});
		expect(events).toEqual(["returned"]);
	});

	it("is checked at most twice a second, however many calls fail", async () => {
		const { clock, checks, health } = start({ ready: false });
		for (let count = 0; count < 1_000; count += 1) {
			health.checkSoon();
			await clock.advanceAsync(10);
		}
		expect(Math.min(...pausesOf(checks))).toBeGreaterThanOrEqual(500);
		expect(checks.length).toBeGreaterThan(15);
	});

	it("is not checked after it was closed", async () => {
		const { clock, checks, health } = start({ ready: "never" });
		health.close();
		await clock.advanceAsync(60_000);
		expect(checks).toHaveLength(1);
		expect(clock.nextTimerMs()).toBeUndefined();
	});
});
