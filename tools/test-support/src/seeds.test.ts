import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runsOr, seedOr, seedsOr } from "./seeds.ts";

describe("the seeds of a test", () => {
	beforeEach(() => {
		vi.stubEnv("PLINTH_SEED", undefined);
		vi.stubEnv("PLINTH_RUNS", undefined);
	});
	afterEach(() => {
		vi.unstubAllEnvs();
	});

	it("are those of the test by default", () => {
		expect(seedsOr(3)).toEqual([1, 2, 3]);
		expect(seedsOr(2, 1_000)).toEqual([1_000, 1_001]);
		expect([seedOr(7), runsOr(9)]).toEqual([7, 9]);
	});

	it("are those that the environment chooses", () => {
		vi.stubEnv("PLINTH_SEED", "17");
		vi.stubEnv("PLINTH_RUNS", "2");
		expect(seedsOr(3)).toEqual([17, 18]);
		expect([seedOr(7), runsOr(9)]).toEqual([17, 2]);
	});

	it("must be integers", () => {
		vi.stubEnv("PLINTH_SEED", "latest");
		expect(() => seedOr(1)).toThrow('PLINTH_SEED must be an integer, got: "latest"');
	});
});
