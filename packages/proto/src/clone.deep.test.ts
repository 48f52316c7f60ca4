import { assertClones } from "@plinth/protoc-gen-clone/testing";
import { runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { generatedCloners } from "./cloners.fixture.ts";

describe("the generated cloners, in many runs", () => {
	it.each(generatedCloners.map((cloner) => [cloner.schema.typeName, cloner] as const))(
		"clone random messages of %s",
		(_typeName, cloner) => assertClones(cloner, { runs: runs(50), seed: seed + 1 }),
	);
});
