import { describe, expect, it } from "vitest";
import { recordHistory } from "../testdata/simulation/artist-history.ts";
import { checkLinearizable } from "../testdata/simulation/linearizability.ts";
import { seeds } from "../testdata/simulation/seeds.ts";
import { createSimulation } from "../testdata/simulation/simulation.ts";
import { runWatchers } from "../testdata/simulation/watchers.ts";

describe("many more interleavings", () => {
	it("of concurrent calls are explained by the history that watches saw", async () => {
		for (const seed of seeds(3_000)) {
			const size = { callers: 3 + (seed % 6), callsEach: 5 + (seed % 20) };
			const { operations, events } = await recordHistory(await createSimulation({ seed }), size);
			expect(() => checkLinearizable(events, operations), `seed ${seed}`).not.toThrow();
		}
	});

	it("of writers and watchers leave each watcher with what is stored", async () => {
		for (const seed of seeds(3_000)) {
			const limits = seed % 3 === 0 ? { logEvents: 1 + (seed % 10) } : {};
			const size = {
				writers: 2 + (seed % 4),
				writesEach: 5 + (seed % 25),
				watchers: 2 + (seed % 5),
			};
			const simulation = await createSimulation({ seed, limits });
			await expect(runWatchers(simulation, size), `seed ${seed}`).resolves.toBe(undefined);
		}
	});
});
