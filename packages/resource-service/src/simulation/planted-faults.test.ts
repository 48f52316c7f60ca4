import { describe, expect, it } from "vitest";
import { recordHistory } from "./artist-history.fixture.ts";
import { checkLinearizable, Violation } from "./linearizability.fixture.ts";
import { type PlantedFault, plantedFaults } from "./planted-faults.fixture.ts";
import { createSimulation, type Simulation } from "./simulation.fixture.ts";
import { runWatchers } from "./watchers.fixture.ts";

/** The checks that must notice each fault. */
const checks = {
	"the check of histories": async (simulation: Simulation) => {
		const { operations, events } = await recordHistory(simulation);
		checkLinearizable(events, operations);
	},
	"the check of watchers": (simulation: Simulation) => runWatchers(simulation),
};
/** How many runs a check has to notice a fault that strikes once or twice in each. */
const runs = 100;

/** What is decided on an outdated resource is stored and watched as any other change. */
function isNoticedBy(check: string, fault: PlantedFault): boolean {
	return fault !== "rebase on an outdated resource" || check === "the check of histories";
}

describe.each(Object.entries(checks))("%s", (name, check) => {
	it.each(plantedFaults.filter((fault) => isNoticedBy(name, fault)))(
		"notices a %s",
		async (fault) => {
			let noticedAfter = 0;
			for (let seed = 1; seed <= runs && noticedAfter === 0; seed += 1) {
				try {
					await check(await createSimulation({ seed, fault }));
				} catch (error) {
					expect(error).toBeInstanceOf(Violation);
					noticedAfter = seed;
				}
			}
			expect(noticedAfter).toBeGreaterThan(0);
		},
	);
});
