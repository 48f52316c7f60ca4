import { addNote } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { faultNames, mutants } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

describe("the simulation finds within 1,000 seeds that servers", () => {
	it.for(faultNames)("%s", async (fault, context) => {
		const { isFound, otherSeed, output } = await runMutant(fault, 1_000);
		expect(isFound, output).toBe(true);
		if (otherSeed !== undefined) {
			const { seed } = mutants[fault];
			addNote(context, `record seed ${otherSeed} for "${fault}": ${seed} no longer finds it`);
		}
	});
});
