import { describe, expect, it } from "vitest";
import { withoutFences, withoutOwnWrites, withoutPriming } from "./planted-faults.fixture.ts";
import { firstViolation, simulateAll } from "./seeds.fixture.ts";
import { simulate } from "./simulation.fixture.ts";

const everySeed = Array.from({ length: 30 }, (_, at) => at + 1);

describe("controllers that feed each other, under a seeded scheduler", () => {
	it("compute what users declared, go back to nothing older, and end", async () => {
		const counts = await simulateAll(everySeed);
		// What the simulation is about has happened.
		expect(counts.waits).toBeGreaterThan(0);
		expect(counts.restarts).toBeGreaterThan(0);
		expect(counts.fenced).toBeGreaterThan(0);
		expect(counts.leaders).toBeGreaterThan(2 * everySeed.length);
	});

	it("do exactly the same with the same seed", async () => {
		const [one, other] = [await simulate(12), await simulate(12)];
		expect(other).toEqual(one);
		expect(other.story).not.toBe((await simulate(14)).story);
	});
});

describe("the checks of the simulation", () => {
	it("see controllers that act before they are primed", async () => {
		const found = await firstViolation({ wrapWatching: withoutPriming });
		expect(found?.violation).toContain("went back");
	});

	it("see controllers that act on a cache older than their own writes", async () => {
		const found = await firstViolation({ wrapWriting: withoutOwnWrites });
		expect(found?.violation).toContain("without knowledge of its own write");
	});

	it("see what a former leader writes without a fence", async () => {
		const found = await firstViolation({ wrapWriting: withoutFences });
		expect(found?.violation).toContain("went back");
	});

	it("see what is computed of events in the wrong order", async () => {
		const found = await firstViolation({ reorders: true });
		expect(found?.violation).toMatch(/which never was|went back|at rest there is/);
	});

	it("see two leaders, where one holds on to a lease for longer than it was granted", async () => {
		const found = await firstViolation({ trusted: 1.5 });
		expect(found?.violation).toMatch(/is reconciled on (first|second) while/);
	});
});
