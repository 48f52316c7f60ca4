import { describe, expect, it } from "vitest";
import { findsMutants } from "./finds-mutants.fixture.ts";
import { faultNames } from "./mutants.fixture.ts";
import { runTest } from "./run-test.fixture.ts";

describe("a test, or the simulation within 1,000 seeds, finds that servers", () => {
	findsMutants(faultNames, 1_000);
});

it("a test that concerns another rule passes with a planted fault", async () => {
	const { isFound, output } = await runTest("announce CHECKING", {
		file: "schema/followers.test.ts",
		name: "are not changed by what an earlier schema of them has sent",
	});
	expect(output).toContain("passes");
	expect(isFound).toBe(false);
});
