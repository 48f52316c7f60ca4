/**
 * Prints the lines of a folder that no process has reached, from the coverage that Node.js writes.
 *
 *     NODE_V8_COVERAGE=/tmp/coverage node packages/db-constraint/src/simulation/main.ts --runs 5000
 *     node scripts/unreached-lines.ts /tmp/coverage packages/db-constraint/src
 *
 * Tests and fixtures are left out, and so are the folders that --without names. A line counts as unreached if any code on
 * it was not reached by any process; lines of punctuation, comments and imports do not count. The functions of a file that
 * no process has loaded are not listed, but the file is.
 */
import { globSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

interface Range {
	readonly startOffset: number;
	readonly endOffset: number;
	readonly count: number;
}

/** A file of coverage: see https://chromedevtools.github.io/devtools-protocol/tot/Profiler/. */
interface ProcessCoverage {
	readonly result: readonly {
		readonly url: string;
		readonly functions: readonly { readonly ranges: readonly Range[] }[];
	}[];
}

const { values, positionals } = parseArgs({
	allowPositionals: true,
	options: { without: { type: "string", multiple: true, default: [] } },
});
const [coverage, folder] = positionals;
if (coverage === undefined || folder === undefined) {
	throw new Error("usage: node scripts/unreached-lines.ts <folder of coverage> <folder of source>");
}

const files = globSync("**/*.ts", { cwd: folder })
	.filter((path) => !/\.(test|fixture)\.ts$/.test(path))
	.filter((path) => !values.without.some((each) => path.startsWith(`${each}/`)))
	.sort();
const sources = new Map(
	files.map((path) => {
		const file = resolve(folder, path);
		return [pathToFileURL(file).href, readFileSync(file, "utf8")] as const;
	}),
);

/** For each file, which of its characters some process has reached. */
const reached = new Map<string, Uint8Array>();
for (const name of globSync("*.json", { cwd: coverage })) {
	const { result } = JSON.parse(readFileSync(join(coverage, name), "utf8")) as ProcessCoverage;
	for (const { url, functions } of result) {
		const source = sources.get(url);
		if (source === undefined) {
			continue;
		}
		const all = reached.get(url) ?? new Uint8Array(source.length);
		reached.set(url, all);
		for (const [at, isReached] of reachedIn(source, functions).entries()) {
			all[at] ||= isReached;
		}
	}
}

let lines = 0;
let unreached = 0;
for (const [url, source] of sources) {
	const all = reached.get(url);
	const path = relative(resolve(folder), new URL(url).pathname);
	if (all === undefined) {
		console.log(`${path}: not loaded`);
		continue;
	}
	const found = unreachedLines(source, all);
	if (found.length > 0) {
		console.log([path, ...found].join("\n"));
	}
	unreached += found.length;
}
console.log(`${lines} lines, of which ${unreached} were not reached`);

/** Inner ranges refine outer ones: those are larger. */
function reachedIn(
	source: string,
	functions: ProcessCoverage["result"][number]["functions"],
): Uint8Array {
	const reached = new Uint8Array(source.length).fill(1);
	const ranges = functions.flatMap((each) => each.ranges);
	const size = ({ startOffset, endOffset }: Range) => endOffset - startOffset;
	for (const { startOffset, endOffset, count } of ranges.toSorted((a, b) => size(b) - size(a))) {
		reached.fill(count > 0 ? 1 : 0, startOffset, endOffset);
	}
	return reached;
}

/** The lines with code that was not reached, with their numbers. Counts all lines with code. */
function unreachedLines(source: string, reached: Uint8Array): readonly string[] {
	const found: string[] = [];
	let start = 0;
	for (const [above, line] of source.split("\n").entries()) {
		if (isCode(line.trim())) {
			lines += 1;
			if (line.split("").some((char, at) => char.trim() !== "" && reached[start + at] === 0)) {
				found.push(`  ${above + 1}: ${line.trim()}`);
			}
		}
		start += line.length + 1;
	}
	return found;
}

function isCode(line: string): boolean {
	return !(
		line === "" ||
		/^[\])},;]+$/.test(line) ||
		/^(\/\/|\/\*|\*|import |\} from )/.test(line)
	);
}
