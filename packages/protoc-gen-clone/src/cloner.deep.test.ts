import { runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { assertClones } from "./testing/assert-clones.ts";
import { tortureCloners } from "./testing/torture-cloners.ts";

describe("a generated cloner, in many runs", () => {
	it.each(tortureCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clones random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: runs(60), seed: seed + 1 }),
	);
});
