/**
 * Fails on tables in pages that are 120 columns wide or wider: what needs more room does not belong in a table.
 *
 *     node scripts/check-tables.ts [--root <folder>]
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { filesWith } from "./workspace.ts";

const tooWide = 120;

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const problems = filesWith(values.root, ["md"]).flatMap((path) => {
	const found: string[] = [];
	let isCode = false;
	for (const [index, line] of readFileSync(join(values.root, path), "utf8").split("\n").entries()) {
		if (/^\s*```/.test(line)) {
			isCode = !isCode;
		}
		const columns = [...line].length;
		if (!isCode && /^\s*\|/.test(line) && columns >= tooWide) {
			found.push(
				`${path}:${index + 1}: the table has ${columns} columns of text, keep it below 120`,
			);
			break;
		}
	}
	return found;
});
if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exitCode = 1;
}
