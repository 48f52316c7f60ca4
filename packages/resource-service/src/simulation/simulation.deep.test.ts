import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { recordHistory } from "./artist-history.fixture.ts";
import { checkLinearizable } from "./linearizability.fixture.ts";
import { createSimulation } from "./simulation.fixture.ts";
import { runWatchers } from "./watchers.fixture.ts";

describe("many more interleavings", () => {
	it("of concurrent calls are explained by the history that watches saw", () =>
		forEachSeed(150, async (seed) => {
			const size = { callers: 3 + (seed % 6), callsEach: 5 + (seed % 20) };
			const { operations, events } = await recordHistory(await createSimulation({ seed }), size);
			checkLinearizable(events, operations);
		}));

	it("of writers and watchers leave each watcher with what is stored", () =>
		forEachSeed(150, async (seed) => {
			const limits = seed % 3 === 0 ? { logEvents: 1 + (seed % 10) } : {};
			const writesEach = 5 + (seed % 25);
			const size = { writers: 2 + (seed % 4), writesEach, watchers: 2 + (seed % 5) };
			await runWatchers(await createSimulation({ seed, limits }), size);
		}));

	it("of writers and many watchers leave each watcher with what is stored", () =>
		forEachSeed(40, async (seed) => {
			const limits = seed % 2 === 0 ? { logEvents: 1 + (seed % 20) } : {};
			const size = { writers: 1 + (seed % 5), writesEach: 10, watchers: 20 + (seed % 80) };
			await runWatchers(await createSimulation({ seed, limits }), size);
		}));
});
