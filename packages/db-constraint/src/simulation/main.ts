/**
 * Runs seeds of the simulation and prints those that break a promise, or prints the trace of one seed.
 *
 *     node src/simulation/main.ts --runs 1000 --from 0
 *     node src/simulation/main.ts --seed 17 --trace
 */
import { parseArgs } from "node:util";
import { simulate } from "./simulation.fixture.ts";

const { values } = parseArgs({
	options: {
		runs: { type: "string", default: "100" },
		from: { type: "string", default: "0" },
		seed: { type: "string" },
		trace: { type: "boolean", default: false },
		/** Stops after this many failures. */
		"max-failures": { type: "string", default: "10" },
	},
});

// Thousands of conflicts are thrown; capturing their stacks would only cost time.
Error.stackTraceLimit = values.trace ? 10 : 0;

const from = Number(values.seed ?? values.from);
const count = values.seed === undefined ? Number(values.runs) : 1;
const limit = Number(values["max-failures"]);
const startedAt = performance.now();
let failures = 0;
let completed = 0;
for (let seed = from; seed < from + count && failures < limit; seed++) {
	const { violation, trace } = await simulate(seed, values.trace);
	completed += 1;
	if (completed % 1_000 === 0) {
		const perSeedMs = ((performance.now() - startedAt) / completed).toFixed(1);
		console.error(`${completed} seeds so far, ${failures} failures, ${perSeedMs} ms per seed`);
	}
	for (const line of trace) {
		console.log(line);
	}
	if (violation !== undefined) {
		failures += 1;
		console.log(`seed ${seed}: promise ${violation.promise}: ${violation.message}`);
	}
}
const elapsedMs = performance.now() - startedAt;
console.log(
	`${completed} seeds, ${failures} failures, ${(elapsedMs / completed).toFixed(1)} ms per seed`,
);
process.exitCode = failures > 0 ? 1 : 0;
