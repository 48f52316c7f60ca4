import { SeededEventLoop } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { recordHistory } from "./artist-history.fixture.ts";
import { checkLinearizable } from "./linearizability.fixture.ts";
import { createSimulation } from "./simulation.fixture.ts";
import { startLoops } from "./starving-loops.fixture.ts";
import { runWatchers } from "./watchers.fixture.ts";

describe("beside loops that never wait", () => {
	it("concurrent calls are told what the history explains, and the loops let others run", () =>
		forEachSeed(10, async (seed) => {
			const simulation = await createSimulation({ seed });
			const loops = startLoops(simulation, seed);
			const { operations, events } = await recordHistory(simulation);
			checkLinearizable(events, operations);
			await simulation.scheduler.run(loops.ended);
			expect(loops.eventLoop.longestMs).toBeLessThan(SeededEventLoop.longestAllowedMs);
		}));

	it("watchers see each change once and in order", () =>
		forEachSeed(10, async (seed) => {
			const simulation = await createSimulation({ seed });
			const loops = startLoops(simulation, seed);
			expect(await runWatchers(simulation)).toBe(0);
			await simulation.scheduler.run(loops.ended);
			expect(loops.eventLoop.longestMs).toBeLessThan(SeededEventLoop.longestAllowedMs);
		}));

	it("a scheduler without a budget would be found", async () => {
		const simulation = await createSimulation({ seed: 1 });
		const loops = startLoops(simulation, 1, { hasBudget: false });
		await simulation.scheduler.run(loops.ended);
		expect(loops.eventLoop.longestMs).toBeGreaterThan(SeededEventLoop.longestAllowedMs);
	});
});
