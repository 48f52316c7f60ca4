/**
 * Runs all mutants, or those whose names contain a word:
 *
 *     node src/mutants/main.ts [word]
 */
import { faultNames } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

const [word = ""] = process.argv.slice(2);
for (const fault of faultNames.filter((name) => name.includes(word))) {
	const { isFound, output } = await runMutant(fault, 1_000);
	console.log(`${isFound ? "found" : "NOT FOUND"}: ${fault}\n    ${output.split("\n")[0]}`);
	process.exitCode ||= isFound ? 0 : 1;
}
