/**
 * Runs seeds of the simulation and prints those that break a promise; or tells the story of one.
 *
 *     node src/simulation/main.ts --seeds 1000 --from 0
 *     node src/simulation/main.ts --seed 17 --story
 */
import { parseArgs } from "node:util";
import { simulate } from "./simulation.ts";

const { values } = parseArgs({
	options: {
		seeds: { type: "string", default: "100" },
		from: { type: "string", default: "0" },
		seed: { type: "string" },
		story: { type: "boolean", default: false },
		/** Stops at that many failures. */
		stop: { type: "string", default: "10" },
	},
});

// Nobody reads the stacks of thousands of conflicts.
Error.stackTraceLimit = values.story ? 10 : 0;

const from = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const limit = Number(values.stop);
const began = performance.now();
let failures = 0;
let ran = 0;
for (let seed = from; seed < from + count && failures < limit; seed++) {
	const { violation, story } = await simulate(seed, values.story);
	ran += 1;
	if (ran % 1_000 === 0) {
		const perSeedMs = ((performance.now() - began) / ran).toFixed(1);
		console.error(`${ran} seeds so far, ${failures} failures, ${perSeedMs} ms a seed`);
	}
	for (const line of story) {
		console.log(line);
	}
	if (violation !== undefined) {
		failures += 1;
		console.log(`seed ${seed}: promise ${violation.promise}: ${violation.message}`);
	}
}
const tookMs = performance.now() - began;
console.log(`${ran} seeds, ${failures} failures, ${(tookMs / ran).toFixed(1)} ms a seed`);
process.exitCode = failures > 0 ? 1 : 0;
