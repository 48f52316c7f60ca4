/**
 * Runs a tier of the tests of all packages with turbo, and sums it up in the last lines: each test that
 * failed, each task that failed without one, and the tests that were skipped, with the tool that is missing for them.
 *
 *     node scripts/run-tests.ts test|test:deep|test:soak [options of turbo run]
 *
 * With PLINTH_NO_SKIPS=1 a skipped test is a failure, as in CI.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Tool, tools, toolVersion } from "@plinth/test-support/tools";
import { readFailedTasks, summariesFolder } from "./failed-tasks.ts";
import { readReports, reportFiles, root, summarize } from "./test-report.ts";

const [task = "", ...options] = process.argv.slice(2);
const tiers: Readonly<Record<string, string>> = {
	test: "test",
	"test:deep": "deep",
	"test:soak": "soak",
};
const tier = tiers[task];
if (tier === undefined) {
	console.error(`usage: node scripts/run-tests.ts ${Object.keys(tiers).join("|")} [options]`);
	process.exit(2);
}

// A report of an earlier run would be counted. Turbo restores those of what it does not run again.
for (const file of reportFiles(tier)) {
	rmSync(join(root, file));
}
rmSync(join(root, summariesFolder), { recursive: true, force: true });
// Servers that tests start refuse variables with this prefix that they don't know.
const { PLINTH_NO_SKIPS, ...inherited } = process.env;
// vitest itself and its workers, too, load what is compiled already. Most processes of servers and of the command line
// are killed by the tests that start them, and never write this cache: task `test:prepare` fills it.
const environment = {
	...inherited,
	NODE_COMPILE_CACHE: join(root, "node_modules/.cache/node-compile"),
};
const names = Object.keys(tools) as Tool[];
const installed = names.map((tool) => `${tool}: ${toolVersion(tool) ?? "missing"}`).join("\n");
const { status } = spawnSync("turbo", ["run", task, "--continue", "--summarize", ...options], {
	cwd: root,
	stdio: "inherit",
	env: {
		// Many deep tests wait for timers, disks and other processes: more packages at once keep the cores busy.
		...(tier === "deep" && { TURBO_CONCURRENCY: "4" }),
		...environment,
		// A part of turbo's cache key: a test that was skipped for a tool runs once that is installed.
		TEST_TOOLS: installed,
	},
});
const { text, passes } = summarize(readReports(tier), {
	failedTasks: readFailedTasks(root),
	noSkips: PLINTH_NO_SKIPS === "1",
});
console.log(text);
process.exit(passes && status === 0 ? 0 : 1);
