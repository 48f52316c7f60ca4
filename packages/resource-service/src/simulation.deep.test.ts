import { describe, it } from "vitest";
import { recordHistory } from "../testdata/simulation/artist-history.ts";
import { checkLinearizable } from "../testdata/simulation/linearizability.ts";
import { forEachSeed } from "../testdata/simulation/seeds.ts";
import { createSimulation } from "../testdata/simulation/simulation.ts";
import { runWatchers } from "../testdata/simulation/watchers.ts";

describe("many more interleavings", () => {
	it("of concurrent calls are explained by the history that watches saw", () =>
		forEachSeed(3_000, async (seed) => {
			const size = { callers: 3 + (seed % 6), callsEach: 5 + (seed % 20) };
			const { operations, events } = await recordHistory(await createSimulation({ seed }), size);
			checkLinearizable(events, operations);
		}));

	it("of writers and watchers leave each watcher with what is stored", () =>
		forEachSeed(3_000, async (seed) => {
			const limits = seed % 3 === 0 ? { logEvents: 1 + (seed % 10) } : {};
			const writesEach = 5 + (seed % 25);
			const size = { writers: 2 + (seed % 4), writesEach, watchers: 2 + (seed % 5) };
			await runWatchers(await createSimulation({ seed, limits }), size);
		}));
});
