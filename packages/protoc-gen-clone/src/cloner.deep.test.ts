import { describe, it } from "vitest";
import { assertClones } from "./testing/assert-clones.fixture.ts";
import { TORTURE_CLONERS } from "./testing/torture-cloners.fixture.ts";

const runs = Number(process.env.PLINTH_SEEDS ?? 1_000);

describe("a generated cloner, at length", () => {
	it.each(TORTURE_CLONERS.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clones random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs, seed: 2 }),
	);
});
