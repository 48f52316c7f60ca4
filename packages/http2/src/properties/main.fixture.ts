/**
 * Runs random sessions, and ends with an error if one finds a fault:
 *
 *     node src/properties/main.fixture.ts <number of seeds>
 */
import { checkBothSides } from "./both-sides.fixture.ts";
import { fuzzClient } from "./client-fuzz.fixture.ts";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

const [, , seeds = "100"] = process.argv;
for (let seed = 1; seed <= Number(seeds); seed++) {
	for (const check of [checkFlowControl, checkHpack, checkBothSides, fuzz, fuzzClient]) {
		await check(seed).catch((cause) => {
			throw new Error(`seed ${seed} of ${check.name} fails`, { cause });
		});
	}
}
// Not by itself: a session that a fault leaves open would keep the process alive.
process.exit();
