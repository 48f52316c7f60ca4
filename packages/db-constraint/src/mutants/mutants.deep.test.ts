import { describe, expect, it } from "vitest";
import { mutants } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

describe("the simulation finds within 500 seeds that servers", () => {
	it.each(mutants)("$name", async (mutant) => {
		const { isFound, output } = await runMutant(mutant, 500);
		expect(isFound, output).toBe(true);
	});
});
