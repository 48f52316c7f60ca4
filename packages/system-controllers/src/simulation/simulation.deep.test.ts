import { expect, it } from "vitest";
import { simulate } from "./simulation.fixture.ts";

const first = Number(process.env.PLINTH_SEED ?? 1);
const seeds = Number(process.env.PLINTH_SEEDS ?? 1_000);

it("two servers that lag behind remove units only when they are empty, and all that are marked", async () => {
	let removed = 0;
	for (let seed = first; seed < first + seeds; seed++) {
		const result = await simulate(seed);
		expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] });
		removed += result.removed;
	}
	console.log(`${seeds} runs removed ${removed} namespaces and partitions`);
});
