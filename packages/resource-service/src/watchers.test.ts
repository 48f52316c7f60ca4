import { describe, expect, it } from "vitest";
import { seeds } from "../testdata/simulation/seeds.ts";
import { createSimulation } from "../testdata/simulation/simulation.ts";
import { runWatchers } from "../testdata/simulation/watchers.ts";

describe("watchers that start, stall, stop and resume while writers write", () => {
	it("see each change once, in order, and end with what is stored", async () => {
		for (const seed of seeds(40)) {
			await expect(runWatchers(await createSimulation({ seed })), `seed ${seed}`).resolves.toBe(
				undefined,
			);
		}
	});

	it("watch anew where they fell further behind than the log reaches", async () => {
		for (const seed of seeds(40)) {
			const simulation = await createSimulation({ seed, limits: { logEvents: 4 } });
			await expect(runWatchers(simulation), `seed ${seed}`).resolves.toBe(undefined);
		}
	});
});
