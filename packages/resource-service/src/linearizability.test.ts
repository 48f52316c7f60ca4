import { describe, expect, it } from "vitest";
import { recordHistory } from "../testdata/simulation/artist-history.ts";
import { checkLinearizable } from "../testdata/simulation/linearizability.ts";
import { seeds } from "../testdata/simulation/seeds.ts";
import { createSimulation } from "../testdata/simulation/simulation.ts";

describe("concurrent calls on a few resources", () => {
	it("are told what the history that watches saw explains", async () => {
		for (const seed of seeds(60)) {
			const { operations, events } = await recordHistory(await createSimulation({ seed }));
			expect(() => checkLinearizable(events, operations), `seed ${seed}`).not.toThrow();
		}
	});
});
