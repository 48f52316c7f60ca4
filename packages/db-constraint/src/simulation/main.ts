/**
 * Runs seeds of the simulation and prints those that break a promise, or prints the trace of one seed.
 *
 *     node --max-semi-space-size=64 src/simulation/main.ts --runs 1000 --from 0
 *     node src/simulation/main.ts --seed 17 --trace
 */
import { readArguments } from "./arguments.fixture.ts";
import { simulate } from "./simulation.fixture.ts";

const { values, numberOf, options } = readArguments(process.argv.slice(2));

if (values.help) {
	console.log(`Runs seeds of the simulation, and prints those that break a promise.

  --from N           the first seed (default 0)
  --runs N           how many seeds (default 100): to resume, begin after those that are done
  --seed N           only this seed
  --losses N         in one of N seeds, restore a deployment from a backup, or delete one (default 0: in none)
  --restore-meta     restore the meta deployment in each seed (default: in some)
  --switch-schemas   switch schemas in each seed, and reference twice as often (default: switch in some)
  --trace            print what happens, step by step
  --max-failures N   stop after so many failures (default 10)`);
	process.exit(0);
}

// Thousands of conflicts are thrown; capturing their stacks would only cost time.
Error.stackTraceLimit = values.trace ? 10 : 0;

const from = numberOf(values.seed === undefined ? "from" : "seed");
const count = values.seed === undefined ? numberOf("runs") : 1;
const limit = numberOf("max-failures");
const lost = new Map<string, number>();
const startedAt = performance.now();
let failures = 0;
let completed = 0;
for (let seed = from; seed < from + count && failures < limit; seed++) {
	const outcome = await simulate(seed, options);
	const { violation, trace } = outcome;
	completed += 1;
	for (const loss of outcome.losses) {
		lost.set(loss, (lost.get(loss) ?? 0) + 1);
	}
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
for (const [loss, times] of [...lost].sort(([a], [b]) => a.localeCompare(b))) {
	console.log(`  ${times} times: ${loss}`);
}
process.exitCode = failures > 0 ? 1 : 0;
