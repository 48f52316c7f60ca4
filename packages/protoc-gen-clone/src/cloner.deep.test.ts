import { describe, it } from "vitest";
import { assertClones } from "./testing/assert-clones.ts";
import { tortureCloners } from "./testing/torture-cloners.ts";

describe("a generated cloner, at length", () => {
	it.each(tortureCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clones random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: 1_000, seed: 2 }),
	);
});
