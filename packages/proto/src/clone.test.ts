import { assertClones } from "@plinth/protoc-gen-clone/testing";
import { describe, it } from "vitest";
import { generatedCloners } from "./cloners.fixture.ts";

describe("the generated cloners", () => {
	// Few runs each: the deep tests run many.
	it.each(generatedCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clone random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: 30, seed: 1 }),
	);
});
