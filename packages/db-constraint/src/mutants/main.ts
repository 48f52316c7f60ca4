/**
 * Runs all mutants, or those whose names contain a word:
 *
 *     node src/mutants/main.ts [word]
 */
import { faultNames } from "./mutants.fixture.ts";
import { runMutants } from "./run-mutant.fixture.ts";

const [word = ""] = process.argv.slice(2);
const verdicts = runMutants(
	faultNames.filter((name) => name.includes(word)),
	1_000,
);
for (const [fault, verdict] of verdicts) {
	const { isFound, output } = await verdict;
	console.log(`${isFound ? "found" : "NOT FOUND"}: ${fault}\n    ${output.split("\n")[0]}`);
	process.exitCode ||= isFound ? 0 : 1;
}
