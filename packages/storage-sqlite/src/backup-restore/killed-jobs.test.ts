import { afterAll, beforeAll, describe, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { killJob, makeOriginal } from "./killed-jobs.fixture.ts";

let directory: TestDirectory;

beforeAll(async () => {
	directory = await testDirectory();
	await makeOriginal(directory);
});

afterAll(async () => {
	await directory[Symbol.asyncDispose]();
});

describe("a process that is killed", () => {
	it.each(["restore-open", "backup-open"] as const)("during a %s loses nothing", async (job) => {
		await killJob(directory, job, { afterMs: 40 });
	});
});
