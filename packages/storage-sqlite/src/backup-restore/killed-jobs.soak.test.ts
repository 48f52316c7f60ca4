import { describeWith } from "@plinth/test-support";
import { it } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { killJob, makeOriginal } from "./killed-jobs.fixture.ts";

describeWith("strace")("a process that is killed", () => {
	it("at each system call that changes the directory or waits for the disk, loses nothing", async () => {
		await using directory = await testDirectory();
		await makeOriginal(directory);
		for (const job of ["restore", "restore-open", "backup", "backup-open"] as const) {
			for (const call of ["unlink", "fsync", "fdatasync", "close"]) {
				for (let nth = 1; nth < 30 && (await killJob(directory, job, { call, nth })); nth++) {
					// Until the job has no such call left.
				}
			}
		}
	});
});
