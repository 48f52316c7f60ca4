import { addNote } from "@plinth/test-support";
import { expect, it } from "vitest";
import type { FaultName } from "../fault-points.ts";
import { mutants } from "./mutants.fixture.ts";
import { runMutants } from "./run-mutant.fixture.ts";

/** A test for each of the mutants: the simulation finds it with its seed, or else with one of the first seeds. */
export function findsMutants(faults: readonly FaultName[], seeds: number): void {
	const verdicts = runMutants(faults, seeds);
	it.for(faults)("%s", async (fault, context) => {
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
}
