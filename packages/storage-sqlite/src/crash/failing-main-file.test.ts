import { spawnSync } from "node:child_process";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";

describeWith("strace")("a storage whose main file can't be synced", () => {
	it("fails when its log is to be moved there, instead of letting the log grow", async () => {
		const directory = await testDirectory();
		onTestFinished(() => directory[Symbol.asyncDispose]());
		const path = directory.file("storage.db");
		await (await createSqliteBackend({ path })).close();
		const script = new URL("./failing-main-file.fixture.ts", import.meta.url).pathname;
		const failing = ["-P", path, "-e", "inject=fsync,fdatasync:error=EIO"];
		const options = ["-f", "-qq", "-o", "/dev/null", ...failing];
		const run = spawnSync("strace", [...options, process.execPath, script, path], {
			encoding: "utf8",
		});
		expect(run.stderr).toBe("");
		const [, commits] =
			/^failed after (\d+) commits: the storage failed to write.* \(SQLite error 1034\)$/m.exec(
				run.stdout,
			) ?? [];
		// 16 MiB, in commits of 256 KiB.
		expect(Number(commits)).toBeGreaterThan(50);
		expect(Number(commits)).toBeLessThan(70);
	});
});
