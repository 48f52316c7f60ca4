import { describe } from "vitest";
import { findsMutants } from "./finds-mutants.fixture.ts";
import { faultNames, mutants } from "./mutants.fixture.ts";

describe("the simulation finds within 1,000 seeds that servers", () => {
	findsMutants(
		faultNames.filter((fault) => !mutants[fault].isRare),
		1_000,
	);
});
