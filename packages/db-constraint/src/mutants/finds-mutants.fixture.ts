import { addNote } from "@plinth/test-support";
import { expect, it } from "vitest";
import type { FaultName } from "../fault-points.ts";
import { mutants } from "./mutants.fixture.ts";
import { runMutants } from "./run-mutant.fixture.ts";

/**
 * A test for each of the mutants: the test that it names finds it, or the simulation with its seed, or else with one of
 * the first seeds.
 */
export function findsMutants(faults: readonly FaultName[], seeds: number): void {
	const verdicts = runMutants(faults, seeds);
	it.for(faults)("%s", async (fault, context) => {
		const verdict = await verdicts.get(fault);
		expect(verdict?.isFound, verdict?.output).toBe(true);
		const mutant = mutants[fault];
		if (verdict?.otherSeed !== undefined && "seed" in mutant) {
			addNote(
				context,
				`record seed ${verdict.otherSeed} for "${fault}": ${mutant.seed} no longer finds it`,
			);
		}
	});
}
