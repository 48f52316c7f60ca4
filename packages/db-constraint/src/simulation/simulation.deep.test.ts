import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

describe("deployments with crashing servers and lost messages", () => {
	it("keep the promises over many seeds", () =>
		forEachSeed(32, async (seed) => {
			expect((await simulate(seed)).violation).toBeUndefined();
		}));

	it("keep them while all of them switch schemas", () =>
		forEachSeed(8, async (seed) => {
			const outcome = await simulate(seed, { switchesSchemas: true });
			expect(outcome.violation).toBeUndefined();
		}));
});
