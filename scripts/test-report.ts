/**
 * Sums up the reports that the test runs of all packages have left, with the time of each suite.
 * Fails where a test failed, was skipped, or where there is no report at all.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, relative } from "node:path";

interface Report {
	readonly numPassedTests: number;
	readonly numFailedTests: number;
	readonly numPendingTests: number;
	readonly numTodoTests: number;
	readonly testResults: readonly {
		readonly name: string;
		readonly startTime: number;
		readonly endTime: number;
	}[];
}

const files = globSync("{packages,apps,examples,tests}/*/.reports/*.json").sort();
let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of files) {
	const report: Report = JSON.parse(readFileSync(file, "utf8"));
	passed += report.numPassedTests;
	failed += report.numFailedTests;
	skipped += report.numPendingTests + report.numTodoTests;
	const folder = dirname(dirname(file));
	for (const { name, startTime, endTime } of report.testResults) {
		const seconds = ((endTime - startTime) / 1000).toFixed(1).padStart(7);
		console.log(`${seconds} s  ${folder}/${relative(folder, name)}`);
	}
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
if (failed > 0 || skipped > 0 || passed === 0) {
	process.exit(1);
}
