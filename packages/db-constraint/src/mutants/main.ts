/**
 * Runs all mutants, or those whose names contain a word:
 *
 *     node src/mutants/main.ts [word]
 */
import { mutants } from "./mutants.fixture.ts";
import { runMutant } from "./run-mutant.fixture.ts";

const [word = ""] = process.argv.slice(2);
for (const mutant of mutants.filter(({ name }) => name.includes(word))) {
	const { isFound, output } = await runMutant(mutant, 1_000);
	console.log(`${isFound ? "found" : "NOT FOUND"}: ${mutant.name}\n    ${output.split("\n")[0]}`);
	process.exitCode ||= isFound ? 0 : 1;
}
