/** Reads the reports that vitest writes for each package (`.reports/<tier>.json`), and sums them up. */
import { globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { missingTools, type Tool, tools } from "@plinth/test-support/tools";
import type { FailedTask } from "./failed-tasks.ts";

/** The parts of vitest's JSON report that are used here. */
export interface Report {
	readonly testResults: readonly {
		/** The file, as an absolute path. */
		readonly name: string;
		readonly startTime: number;
		readonly endTime: number;
		readonly status: string;
		/** Why the file could not be loaded; empty if it was. */
		readonly message: string;
		readonly assertionResults: readonly {
			readonly fullName: string;
			readonly status: string;
			readonly failureMessages?: readonly string[] | null;
			/** See `addNote` of `@plinth/test-support`. */
			readonly meta?: { readonly note?: string };
		}[];
	}[];
}

/** The root of the repository. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** The files of the reports of a tier, relative to the root. */
export function reportFiles(tier: string): readonly string[] {
	return globSync(`{packages,apps,examples,tests,tools}/*/.reports/${tier}.json`, {
		cwd: root,
	}).sort();
}

/** Reads them. */
export function readReports(tier: string): readonly Report[] {
	return reportFiles(tier).map((file) => JSON.parse(readFileSync(join(root, file), "utf8")));
}

const slowest = 10;
/** How many lines of each failure are shown. */
const messageLines = 12;
/** How many lines are shown of what a task printed that failed though no test did. */
const outputLines = 14;

/** What else decides on the result of a test run. */
export interface RunResult {
	/** The tasks of turbo that failed. */
	readonly failedTasks?: readonly FailedTask[];
	/** Whether a skipped test is a failure. */
	readonly noSkips?: boolean;
}

/** The last lines of a test run. It passes if tests ran, and no test and no task failed. */
export function summarize(
	reports: readonly Report[],
	{ failedTasks = [], noSkips = false }: RunResult = {},
): { readonly text: string; readonly passes: boolean } {
	const failures: string[] = [];
	const skippedFor = new Map<string, number>();
	const otherSkips: string[] = [];
	const times: { readonly seconds: number; readonly file: string }[] = [];
	let passed = 0;
	let skipped = 0;
	for (const suite of reports.flatMap(({ testResults }) => testResults)) {
		const file = relative(root, suite.name);
		times.push({ seconds: (suite.endTime - suite.startTime) / 1_000, file });
		if (suite.status === "failed" && !suite.assertionResults.some(isFailed)) {
			failures.push(`${file}: ${firstLines(suite.message)}`);
		}
		for (const test of suite.assertionResults) {
			if (isFailed(test)) {
				const message = firstLines(test.failureMessages?.[0] ?? "");
				failures.push(`${file}: ${test.fullName}: ${message}`);
				continue;
			}
			if (test.status === "passed") {
				passed += 1;
				continue;
			}
			skipped += 1;
			const missing = missingTools(test.fullName);
			if (missing.length === 0) {
				otherSkips.push(`${file}: ${test.fullName}`);
			}
			for (const tool of missing) {
				skippedFor.set(tool, (skippedFor.get(tool) ?? 0) + 1);
			}
		}
	}
	// Such as one whose process crashed, or that has no test files.
	const unexplained = failedTasks.filter(
		({ directory }) => !failures.some((failure) => failure.startsWith(`${directory}/`)),
	);
	failures.push(
		...unexplained.map(
			({ name, exitCode, output }) =>
				`${name}: ${describeExit(exitCode)}, and no test failed${partOfOutput(output)}`,
		),
	);
	times.sort((a, b) => b.seconds - a.seconds);
	const lines = [
		`The ${Math.min(slowest, times.length)} slowest of ${times.length} files:`,
		...times
			.slice(0, slowest)
			.map(({ seconds, file }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`),
		"",
		...notesOf(reports),
		...failures.map((failure) => `FAILED  ${failure}`),
		...otherSkips.map((test) => `SKIPPED  ${test}`),
		`${passed} passed, ${failures.length} failed, ${skipped} skipped`,
		...[...skippedFor].map(
			([tool, count]) =>
				`${tool} is missing: ${count} ${count === 1 ? "test was" : "tests were"} skipped${packageHint(tool)}`,
		),
	];
	const passes = failures.length === 0 && passed > 0 && !(noSkips && skipped > 0);
	if (passed === 0) {
		lines.push("no test ran");
	}
	return { text: lines.join("\n"), passes };
}

function describeExit(exitCode: number | undefined): string {
	return exitCode === undefined ? "did not exit by itself" : `exited with ${exitCode}`;
}

function notesOf(reports: readonly Report[]): readonly string[] {
	return reports
		.flatMap(({ testResults }) => testResults)
		.flatMap(({ name, assertionResults }) =>
			assertionResults
				.flatMap(({ meta }) => meta?.note ?? [])
				.map((note) => `NOTE  ${relative(root, name)}: ${note}`),
		);
}

function isFailed({ status }: { readonly status: string }): boolean {
	return status === "failed";
}

/** What vitest prints above errors that belong to no test. */
const unhandledErrors = /\bUnhandled (?:Errors?|Rejections?)\b/;

/** What a task printed of errors that belong to no test; if there is none, what it printed last. */
function partOfOutput(output: string): string {
	const lines = output.split("\n").filter((line) => line.trim() !== "");
	const at = lines.findIndex((line) => unhandledErrors.test(line));
	const part = at === -1 ? lines.slice(-outputLines) : lines.slice(at, at + outputLines);
	return part.map((line) => `\n        ${line}`.trimEnd()).join("");
}

/** The first lines of a message, without where it was thrown. */
function firstLines(text: string): string {
	const lines = text.split("\n");
	const thrown = lines.findIndex((line) => /^ +at /.test(line));
	const message = lines.slice(0, thrown === -1 ? undefined : thrown);
	return message.slice(0, messageLines).join("\n        ").trimEnd();
}

function packageHint(tool: string): string {
	return Object.hasOwn(tools, tool) ? ` (Debian package ${tools[tool as Tool].package})` : "";
}
