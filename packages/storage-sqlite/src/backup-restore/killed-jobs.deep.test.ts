import { seededRandom } from "@plinth/runtime/testing";
import { seedOr } from "@plinth/test-support/seeds";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { killJob, makeOriginal } from "./killed-jobs.fixture.ts";

const seed = seedOr(Date.now() % 1_000_000);

let directory: TestDirectory;

beforeAll(async () => {
	directory = await testDirectory();
	await makeOriginal(directory);
});

afterAll(async () => {
	await directory[Symbol.asyncDispose]();
});

describe(`a process that is killed at a random moment (PLINTH_SEED=${seed})`, () => {
	it.each(["restore", "restore-open", "backup", "backup-open"] as const)(
		"of a %s, loses nothing, 50 times",
		async (job) => {
			const random = seededRandom(seed);
			for (let round = 0; round < 50; round++) {
				await killJob(directory, job, { afterMs: random.next() * 200 });
			}
		},
	);

	it("at each system call that changes the directory or waits for the disk", async () => {
		for (const job of ["restore", "restore-open", "backup", "backup-open"] as const) {
			for (const call of ["unlink", "fsync", "fdatasync", "close"]) {
				for (let nth = 1; nth < 30 && (await killJob(directory, job, { call, nth })); nth++) {
					// Until the job has no such call left.
				}
			}
		}
	});
});
