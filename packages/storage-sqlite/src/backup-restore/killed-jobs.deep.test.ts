import { seededRandom } from "@plinth/runtime/testing";
import { describeWith, runs, seed } from "@plinth/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDirectory, testDirectory } from "../directory.fixture.ts";
import { type Job, killJob, makeOriginal } from "./killed-jobs.fixture.ts";

let directory: TestDirectory;

beforeAll(async () => {
	directory = await testDirectory();
	await makeOriginal(directory);
});

afterAll(async () => {
	await directory[Symbol.asyncDispose]();
});

describe(`a process that is killed at a random moment, from seed ${seed}`, () => {
	it.each(["restore", "restore-open", "backup", "backup-open"] as const)(
		"during a %s loses nothing",
		async (job) => {
			const random = seededRandom(seed);
			for (let round = 0; round < runs(1); round++) {
				await killJob(directory, job, { afterMs: random.next() * 200 });
			}
		},
	);
});

describeWith("strace")("a process that is killed at each step", () => {
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
