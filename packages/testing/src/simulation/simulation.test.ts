import { SeededEventLoop } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { withoutFences, withoutOwnWrites, withoutPriming } from "./planted-faults.fixture.ts";
import { firstViolation, simulateAll } from "./seeds.fixture.ts";
import { simulate } from "./simulation.fixture.ts";

const everySeed = Array.from({ length: 20 }, (_, at) => at + 1);

describe("controllers that depend on each other, under a seeded scheduler", () => {
	it("compute the results of the users' declarations, never rewind, and end", async () => {
		const counts = await simulateAll(everySeed);
		// The simulation has covered its events.
		expect(counts.waits).toBeGreaterThan(0);
		expect(counts.restarts).toBeGreaterThan(0);
		expect(counts.fenced).toBeGreaterThan(0);
		expect(counts.leaders).toBeGreaterThan(2 * everySeed.length);
	});

	it("do so beside loops that never wait, a hot resource and many watchers", async () => {
		for (let seed = 1; seed <= 3; seed++) {
			const { violations, longestMs } = await simulate(seed, { crowd: {} });
			expect({ seed, violations }).toEqual({ seed, violations: [] });
			expect(longestMs).toBeLessThan(SeededEventLoop.longestAllowedMs);
		}
	});

	it("behave identically with the same seed", async () => {
		const [one, other] = [await simulate(12), await simulate(12)];
		expect(other).toEqual(one);
		expect(other.transcript).not.toBe((await simulate(14)).transcript);
	});
});

describe("the checks of the simulation", () => {
	it("detect controllers that act before they are primed", async () => {
		const found = await firstViolation({ wrapWatching: withoutPriming });
		expect(found?.violation).toContain("went back");
	});

	it("detect controllers that act on a cache older than their own writes", async () => {
		const found = await firstViolation({ wrapWriting: withoutOwnWrites });
		expect(found?.violation).toContain("without knowledge of its own write");
	});

	it("detect unfenced writes of a former leader", async () => {
		const found = await firstViolation({ wrapWriting: withoutFences });
		expect(found?.violation).toContain("went back");
	});

	it("detect results of events in the wrong order", async () => {
		const found = await firstViolation({ reorders: true });
		expect(found?.violation).toMatch(/never existed|went back|at rest there is/);
	});

	it("detect loops without a budget", async () => {
		const { longestMs } = await simulate(1, { crowd: { hasBudget: false } });
		expect(longestMs).toBeGreaterThan(SeededEventLoop.longestAllowedMs);
	});

	it("detect two leaders, if one relies on a lease for longer than it was granted", async () => {
		const found = await firstViolation({ safeFraction: 1.5 });
		expect(found?.violation).toMatch(/is reconciled on (first|second) while/);
	});
});
