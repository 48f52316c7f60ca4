import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { type Job, killJob, makeOriginal } from "./killed-jobs.fixture.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
if (!hasStrace) {
	console.log("skipped: killing a process at a system call needs strace (Debian package strace)");
}

let directory: TestDirectory;

beforeAll(async () => {
	directory = await testDirectory();
	await makeOriginal(directory);
});

afterAll(async () => {
	await directory[Symbol.asyncDispose]();
});

describe.skipIf(!hasStrace)("a process that is killed at each step", () => {
	const cases: readonly (readonly [Job, string, number])[] = [
		["restore", "rename", 2],
		["restore", "link", 2],
		["restore-open", "rename", 2],
		["restore-open", "link", 1],
		["restore-open", "unlink", 3],
		["backup", "link", 1],
		["backup-open", "link", 1],
	];
	it.each(cases)("of a %s, at %s, loses nothing", async (job, call, least) => {
		let nth = 1;
		while (await killJob(directory, job, { call, nth })) {
			nth += 1;
		}
		// Otherwise the system call is another one here, and nothing was tested.
		expect(nth - 1).toBeGreaterThanOrEqual(least);
	});
});

describe("a process that is killed at some moment", () => {
	it.each(["restore-open", "backup-open"] as const)("of a %s, loses nothing", async (job) => {
		await killJob(directory, job, { afterMs: 40 });
	});
});
