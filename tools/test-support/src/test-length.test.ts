import { describe, expect, it } from "vitest";
import { takeTestLength } from "./test-length.ts";

describe("the length of a test run", () => {
	it("is each suite's own, from seed 1, unless the environment says otherwise", () => {
		const usual = { seed: 1, runs: undefined, seconds: undefined, factor: 1 };
		expect(takeTestLength({}, false)).toEqual(usual);
		expect(takeTestLength({ PLINTH_SEED: "17", PLINTH_RUNS: "2" }, false)).toEqual({
			...usual,
			seed: 17,
			runs: 2,
		});
	});

	it("is a multiple of that in a soak, from a seed of its own", () => {
		const { factor, seed } = takeTestLength({}, true);
		expect(factor).toBe(20);
		expect(seed).toBeGreaterThan(0);
		expect(takeTestLength({ PLINTH_SOAK: "3", PLINTH_SEED: "4" }, true)).toMatchObject({
			factor: 3,
			seed: 4,
		});
	});

	it("leaves nothing of itself in the environment, which servers would refuse", () => {
		const environment = { PLINTH_SEED: "1", PLINTH_SOAK: "1", PLINTH_SERVER: "http://x" };
		takeTestLength(environment, false);
		expect(environment).toEqual({ PLINTH_SERVER: "http://x" });
	});

	it.each(["0", "-1", "1.5", "many"])("is refused if it is no positive integer: %s", (text) => {
		expect(() => takeTestLength({ PLINTH_RUNS: text }, false)).toThrow(
			`PLINTH_RUNS must be a positive integer, got: "${text}"`,
		);
	});
});
