import { addNote } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { faultNames, mutants } from "./mutants.fixture.ts";
import { runMutants } from "./run-mutant.fixture.ts";

describe("the simulation finds within 1,000 seeds that servers", () => {
	const verdicts = runMutants(faultNames, 1_000);

	it.for(faultNames)("%s", async (fault, context) => {
		const verdict = await verdicts.get(fault);
		expect(verdict?.isFound, verdict?.output).toBe(true);
		if (verdict?.otherSeed !== undefined) {
			const { seed } = mutants[fault];
			addNote(
				context,
				`record seed ${verdict.otherSeed} for "${fault}": ${seed} no longer finds it`,
			);
		}
	});
});
