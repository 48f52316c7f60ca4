import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { SetWatcher } from "./set-watchers.fixture.ts";
import { createSimulation, type Simulation } from "./simulation.fixture.ts";
import { runWatchers } from "./watchers.fixture.ts";

describe("watchers that start, stall, stop and resume while writers write", () => {
	it("see each change once, in order, and end with what is stored", () =>
		forEachSeed(20, async (seed) => {
			const fellBehind = await runWatchers(await createSimulation({ seed }));
			expect(fellBehind).toBe(0);
		}));

	it("do so if they are many, with deliveries in slices and queries that overlap", () =>
		forEachSeed(3, async (seed) => {
			const size = { watchers: 40, writesEach: 10 };
			expect(await runWatchers(await createSimulation({ seed }), size)).toBe(0);
		}));

	it("start a new watch if they fell further behind than the log reaches", async () => {
		let fellBehind = 0;
		await forEachSeed(20, async (seed) => {
			const simulation = await createSimulation({ seed, limits: { logEvents: 4 } });
			fellBehind += await runWatchers(simulation);
		});
		expect(fellBehind).toBeGreaterThan(0);
	});
});

describe("sets of watches in one stream each, which change while writers write", () => {
	const createWatcher = (simulation: Simulation) => new SetWatcher(simulation);

	it("see for each watch what a WatchList sees", () =>
		forEachSeed(15, async (seed) => {
			const simulation = await createSimulation({ seed });
			expect(await runWatchers(simulation, {}, createWatcher)).toBe(0);
			expect(simulation.faults).toEqual([]);
		}));

	it("go on with the others if one fell further behind than the log reaches", async () => {
		let fellBehind = 0;
		await forEachSeed(15, async (seed) => {
			const simulation = await createSimulation({ seed, limits: { logEvents: 4 } });
			fellBehind += await runWatchers(simulation, {}, createWatcher);
		});
		expect(fellBehind).toBeGreaterThan(0);
	});
});
