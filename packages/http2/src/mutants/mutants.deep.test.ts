import { describe, expect, it } from "vitest";
import { mutants } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

const seeds = 200;

describe(`${seeds} random sessions of each kind find a client or server that`, () => {
	it.each(mutants)("$name", async (mutant) => {
		const { isFound, output } = await runMutant(mutant, seeds);
		expect(isFound, output).toBe(true);
		// An error of a check, or of the code: neither of the syntax nor of a missing module.
		expect(output).not.toMatch(
			/SyntaxError|ERR_MODULE_NOT_FOUND|ERR_INVALID_TYPESCRIPT|its text occurs/,
		);
	});
});

it("find no fault in the source as it is", async () => {
	expect(await runMutant(undefined, seeds / 4)).toMatchObject({ isFound: false });
});
