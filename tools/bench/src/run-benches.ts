#!/usr/bin/env node
/**
 * Runs the benches of a package (`bench/*.bench.ts`), each in its own process:
 *
 *     plinth-bench [name...] [--quick] [--option=value...]
 *
 * Names choose the benches whose file names contain one of them. Everything else is passed on.
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const args = process.argv.slice(2);
const names = args.filter((each) => !each.startsWith("-"));
const options = args.filter((each) => each.startsWith("-"));
const files = globSync("bench/*.bench.ts")
	.filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
	.sort();
if (files.length === 0) {
	throw new Error(`no bench matches ${names.join(", ") || "bench/*.bench.ts"}`);
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
