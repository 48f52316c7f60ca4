import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FaultName } from "../fault-points.ts";
import type { FindingTest } from "./mutants.fixture.ts";

const testingProcess = fileURLToPath(new URL("./testing-process.fixture.ts", import.meta.url));

/** How a test has ended that runs with a planted fault. */
export interface TestReport {
	/** Whether it has failed. */
	readonly isFound: boolean;
	readonly output: string;
}

/** Runs a test with a planted fault, in a process of its own. Never rejects. */
export function runTest(fault: FaultName, { file, name }: FindingTest): Promise<TestReport> {
	const child = fork(testingProcess, [file, name], {
		env: { ...process.env, FAULT: fault },
		stdio: ["ignore", "ignore", "pipe", "ipc"],
	});
	let stderr = "";
	child.stderr?.on("data", (text) => {
		stderr = `${stderr}${text}`.slice(-4_000);
	});
	return new Promise((resolve) => {
		child.once("message", (report) => {
			if (isReport(report)) {
				resolve(report);
			}
		});
		child.once("close", () => resolve({ isFound: false, output: `the process ended: ${stderr}` }));
	});
}

function isReport(message: unknown): message is TestReport {
	return (
		typeof message === "object" &&
		message !== null &&
		"isFound" in message &&
		typeof message.isFound === "boolean" &&
		"output" in message &&
		typeof message.output === "string"
	);
}
