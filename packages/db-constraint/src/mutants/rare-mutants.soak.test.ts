import { describe } from "vitest";
import { findsMutants } from "./finds-mutants.fixture.ts";
import { faultNames, isRare } from "./mutants.fixture.ts";

describe("the simulation finds within 10,000 seeds that servers", () => {
	findsMutants(faultNames.filter(isRare), 10_000);
});
