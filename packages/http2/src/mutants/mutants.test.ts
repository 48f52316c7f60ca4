import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { mutants } from "./mutants.fixture.ts";
import { mutated } from "./plant-fault.fixture.ts";

describe("mutants", () => {
	it.each(mutants)("still fits the source: $name", async (mutant) => {
		const source = await readFile(new URL(`../${mutant.file}`, import.meta.url), "utf8");
		expect(mutated(mutant, source)).not.toBe(source);
	});
});
