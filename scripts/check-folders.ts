/**
 * Fails on folders with more than 25 TypeScript files, tests and their fixtures not counted: group them in
 * sub-folders by concept.
 *
 *     node scripts/check-folders.ts [--root <folder>]
 */
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { filesWith } from "./workspace.ts";

const limit = 25;

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const files = filesWith(values.root, ["ts", "tsx"]).filter(
	(path) => !/\.(test|fixture)\.tsx?$|(^|\/)gen\//.test(path),
);
const problems = [...Map.groupBy(files, (path) => dirname(path))]
	.filter(([, { length }]) => length > limit)
	.map(([folder, { length }]) => `${folder} has ${length} files, at most ${limit} are allowed`);
if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exitCode = 1;
}
