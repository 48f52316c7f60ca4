import { describe, it } from "vitest";
import { assertClones } from "./testing/assert-clones.ts";
import { tortureCloners } from "./testing/torture-cloners.ts";

const runs = Number(process.env.PLINTH_SEEDS ?? 1_000);

describe("a generated cloner, at length", () => {
	it.each(tortureCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clones random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs, seed: 2 }),
	);
});
