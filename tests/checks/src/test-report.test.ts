import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Report, type RunResult, root, summarize } from "../../../scripts/test-report.ts";

function reportOf(tests: Report["testResults"][number]["assertionResults"], message = ""): Report {
	const status =
		message !== "" || tests.some((test) => test.status === "failed") ? "failed" : "passed";
	const name = join(root, "packages/a/src/a.test.ts");
	return {
		testResults: [{ name, startTime: 0, endTime: 1_500, status, message, assertionResults: tests }],
	};
}

const summary = (report: Report, result: RunResult = {}) => summarize([report], result);

describe("the summary of a test run", () => {
	it("names each test that failed, with its message", () => {
		const { text, passes } = summary(
			reportOf([
				{ fullName: "one", status: "passed" },
				{ fullName: "two", status: "failed", failureMessages: ["Error: not 2\n    at a.ts"] },
			]),
		);
		expect(text).toContain("FAILED  packages/a/src/a.test.ts: two: Error: not 2\n");
		expect(text).toContain("1 passed, 1 failed, 0 skipped");
		expect(passes).toBe(false);
	});

	it("shows the notes of tests that passed", () => {
		const meta = { note: "seed 3 is no longer enough" };
		const { text, passes } = summary(reportOf([{ fullName: "one", status: "passed", meta }]));
		expect(text).toContain("NOTE  packages/a/src/a.test.ts: seed 3 is no longer enough\n");
		expect(passes).toBe(true);
	});

	it("names a file that could not be loaded", () => {
		const { text, passes } = summary(reportOf([], "Cannot find module x"));
		expect(text).toContain("FAILED  packages/a/src/a.test.ts: Cannot find module x\n");
		expect(passes).toBe(false);
	});

	it("names a task that failed though none of its tests did", () => {
		const passed = reportOf([{ fullName: "one", status: "passed" }]);
		const task = { name: "@plinth/a#test", directory: "packages/a", exitCode: 1, output: "" };
		const killed = { name: "@plinth/ab#test", directory: "packages/ab", output: "" };
		const { text, passes } = summary(passed, { failedTasks: [task, killed] });
		expect(text).toContain("FAILED  @plinth/a#test: exited with 1, and no test failed\n");
		expect(text).toContain("FAILED  @plinth/ab#test: did not exit by itself, and no test failed\n");
		expect(text).toContain("1 passed, 2 failed, 0 skipped");
		expect(passes).toBe(false);
	});

	it("shows what such a task printed of errors outside of tests, or else what it printed last", () => {
		const passed = reportOf([{ fullName: "one", status: "passed" }]);
		const task = { name: "@plinth/a#test", directory: "packages/a", exitCode: 1 };
		const before = Array.from({ length: 50 }, (_, at) => `line ${at}`);
		const unhandled = ["⎯⎯ Unhandled Errors ⎯⎯", "", "Error: closed", ...before].join("\n");
		const output = `${before.join("\n")}\n${unhandled}`;
		const shown = (text: string) =>
			summary(passed, { failedTasks: [{ ...task, output: text }] })
				.text.split("\n")
				.map((line) => line.trim());
		expect(shown(output)).toContain("Error: closed");
		expect(shown(output)).not.toContain("line 49");
		expect(shown(before.join("\n"))).toContain("line 49");
		expect(shown(before.join("\n"))).not.toContain("line 0");
	});

	it("does not name a task whose tests failed", () => {
		const failed = reportOf([{ fullName: "two", status: "failed" }]);
		const task = { name: "@plinth/a#test", directory: "packages/a", exitCode: 1, output: "x" };
		const { text } = summary(failed, { failedTasks: [task] });
		expect(text).not.toContain("@plinth/a#test");
		expect(text).toContain("0 passed, 1 failed, 0 skipped");
	});

	it("counts the skipped tests for each tool, and fails for them only if told so", () => {
		const report = reportOf([
			{ fullName: "one", status: "passed" },
			{ fullName: "TLS (needs etcd, openssl) connects", status: "skipped" },
			{ fullName: "a real etcd (needs etcd) reads", status: "skipped" },
		]);
		const { text, passes } = summary(report);
		expect(text).toContain(
			"etcd is missing: 2 tests were skipped (Debian package etcd-server)\nopenssl is missing: 1 test was skipped (Debian package openssl)",
		);
		expect(passes).toBe(true);
		expect(summary(report, { noSkips: true }).passes).toBe(false);
	});

	it("fails if no test ran", () => {
		expect(summary(reportOf([])).passes).toBe(false);
	});
});

describe("a machine with Node and bash alone", () => {
	it("skips the tests that need a tool, and says for which", async () => {
		const folder = await mkdtemp(join(tmpdir(), "plinth-no-tools-"));
		onTestFinished(() => rm(folder, { recursive: true, force: true }));
		await symlink(process.execPath, join(folder, "node"));
		const { stdout: bash } = await promisify(execFile)("which", ["bash"]);
		await symlink(bash.trim(), join(folder, "bash"));
		const report = join(folder, "report.json");
		const vitest = join(root, "node_modules/vitest/vitest.mjs");
		await promisify(execFile)(
			process.execPath,
			[
				...[vitest, "run", "--config", "../../vitest.config.ts"],
				...[
					"--reporter",
					"json",
					"--outputFile",
					report,
					"src/security.test.ts",
					"src/keys.test.ts",
				],
			],
			{ cwd: join(root, "packages/storage-etcd"), env: { ...process.env, PATH: folder } },
		);
		const { text, passes } = summarize([JSON.parse(await readFile(report, "utf8"))]);
		expect(passes, text).toBe(true);
		expect(text).toMatch(/\d+ passed, 0 failed, [1-9]\d* skipped\n/);
		expect(text).toMatch(/^etcd is missing: \d+ tests were skipped/m);
		expect(text).toMatch(/^openssl is missing: \d+ tests? (was|were) skipped/m);
		expect(text).not.toContain("SKIPPED");
	});
});
