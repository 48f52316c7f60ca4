#!/usr/bin/env node
/**
 * Runs the benches of a package (`bench/*.bench.ts`), each in its own process:
 *
 *     plinth-bench [name...] [--growth] [--quick] [--option=value...]
 *
 * Names choose the benches whose file names contain one of them. With `--growth`, the benches are those of growth
 * (`bench/growth-*.ts`). With `--help`, it prints what the chosen benches say about themselves, and runs none.
 * Everything else is passed on.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";

const args = process.argv.slice(2);
const names = args.filter((each) => !each.startsWith("-"));
const isGrowth = args.includes("--growth");
const options = args.filter((each) => each.startsWith("-") && each !== "--growth");
const pattern = isGrowth ? "bench/growth-*.ts" : "bench/*.bench.ts";
const files = globSync(pattern)
	.filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
	.sort();
// The names that all packages get choose benches of some of them.
if (files.length === 0 && !isGrowth) {
	throw new Error(`no bench matches ${names.join(", ") || pattern}`);
}
if (args.includes("--help")) {
	console.log("plinth-bench [name...] [--growth] [--quick] [--option=value...]");
	for (const file of files) {
		console.log(`\n${file}\n${headOf(file)}`);
	}
	process.exit(0);
}
for (const file of files) {
	console.log(`\n${file}`);
	const { status } = spawnSync(process.execPath, ["--expose-gc", file, ...options], {
		stdio: "inherit",
		// Shared objects are frozen outside of production, which is not what is measured.
		env: { ...process.env, NODE_ENV: "production" },
	});
	if (status !== 0) {
		process.exitCode = 1;
	}
}

/** The comment with which a bench begins, without its marks. */
function headOf(file: string): string {
	const comment = /^\/\*\*?([\s\S]*?)\*\//.exec(readFileSync(file, "utf8"))?.[1] ?? "";
	return comment
		.replaceAll(/^[ \t]*\*? ?/gm, "  ")
		.trimEnd()
		.replace(/^\s*\n/, "");
}
