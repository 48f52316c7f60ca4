import { describe, it } from "vitest";
import { recordHistory } from "../testdata/simulation/artist-history.ts";
import { checkLinearizable } from "../testdata/simulation/linearizability.ts";
import { forEachSeed } from "../testdata/simulation/seeds.ts";
import { createSimulation } from "../testdata/simulation/simulation.ts";

describe("concurrent calls on a few resources", () => {
	it("are told what the history that watches saw explains", () =>
		forEachSeed(60, async (seed) => {
			const { operations, events } = await recordHistory(await createSimulation({ seed }));
			checkLinearizable(events, operations);
		}));
});
