import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { recordHistory } from "./artist-history.fixture.ts";
import { checkLinearizable } from "./linearizability.fixture.ts";
import { createSimulation } from "./simulation.fixture.ts";

describe("concurrent calls on a few resources", () => {
	it("are told what the history that watches saw explains", () =>
		forEachSeed(30, async (seed) => {
			const { operations, events } = await recordHistory(await createSimulation({ seed }));
			checkLinearizable(events, operations);
		}));
});
