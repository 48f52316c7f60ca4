import { seedsOr } from "@plinth/test-support/seeds";
import { expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

const seeds = seedsOr(1_000);

it("two servers that lag behind remove units only when they are empty, and all that are marked", async () => {
	let removed = 0;
	for (const seed of seeds) {
		const result = await simulate(seed);
		expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
		removed += result.removed;
	}
	console.log(`${seeds.length} runs removed ${removed} namespaces and partitions`);
});
