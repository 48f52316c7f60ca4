import { addNote } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { mutants } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

describe("the simulation finds within 1,000 seeds that servers", () => {
	it.for(mutants)("$name", async (mutant, context) => {
		const { isFound, otherSeed, output } = await runMutant(mutant, 1_000);
		expect(isFound, output).toBe(true);
		if (otherSeed !== undefined) {
			addNote(
				context,
				`record seed ${otherSeed} for "${mutant.name}": ${mutant.seed} no longer finds it`,
			);
		}
	});
});
