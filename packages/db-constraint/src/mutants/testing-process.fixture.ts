/**
 * Runs one test, with the fault that `FAULT` names, and reports to its parent process how it has ended:
 *
 *     FAULT=<fault> node src/mutants/testing-process.fixture.ts <file in src> <name of the test>
 */
import { fileURLToPath } from "node:url";
import { startVitest, type TestCase } from "vitest/node";
import type { TestReport } from "./run-test.fixture.ts";

const [file = "", name = ""] = process.argv.slice(2);

/** A fault can make a test wait in vain, which ends it: not the one that waits for a minute itself. */
const waitsInVainMs = 120_000;

const vitest = await startVitest("test", [file], {
	config: fileURLToPath(new URL("../../../../vitest.config.ts", import.meta.url)),
	setupFiles: [fileURLToPath(new URL("planted-tests.fixture.ts", import.meta.url))],
	testNamePattern: new RegExp(`${RegExp.escape(name)}$`),
	testTimeout: waitsInVainMs,
	maxWorkers: 1,
	watch: false,
	reporters: [{}],
	coverage: { enabled: false },
});
const report = reportOf(
	vitest.state.getTestModules().flatMap(({ children }) => [...children.allTests()]),
);
await vitest.close();
process.send?.(report);

function reportOf(tests: readonly TestCase[]): TestReport {
	const [result, ...others] = tests
		.map((test) => test.result())
		.filter(({ state }) => state !== "skipped" && state !== "pending");
	if (result === undefined || others.length > 0) {
		return { isFound: false, output: `one test must have this name, not ${tests.length}: ${name}` };
	}
	const [error] = result.errors ?? [];
	return result.state === "failed"
		? { isFound: true, output: `${name}: ${error?.message}` }
		: { isFound: false, output: `passes: ${name}` };
}
