import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";

describeWith("strace")("a commit that is acknowledged", () => {
	it("was synced to disk after its last write", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-trace-"));
		try {
			const trace = join(directory, "trace");
			const script = new URL("./crash-writer.fixture.ts", import.meta.url).pathname;
			const steps = 50;
			const options = [
				"-f",
				"-qq",
				"-y",
				"-e",
				"trace=pwrite64,fsync,fdatasync,write",
				"-o",
				trace,
			];
			const command = [process.execPath, script, join(directory, "storage.db"), "1", String(steps)];
			const run = spawnSync("strace", [...options, ...command], { encoding: "utf8" });
			expect(run.stderr).toBe("");
			expect(run.stdout.split("\n")).toHaveLength(steps + 1);
			let acknowledged = 0;
			let written = false;
			let synced = false;
			for (const line of (await readFile(trace, "utf8")).split("\n")) {
				// A call that the trace interrupts for another thread has ended in its "resumed" line.
				if (/pwrite64\(.*storage\.db-wal/.test(line)) {
					written = true;
					synced = false;
				} else if (/f(data)?sync.* = 0$/.test(line)) {
					synced = written;
				} else if (/ write\(1<.*"0 \d+ \d+\\n"/.test(line)) {
					expect(synced, `acknowledgement ${acknowledged + 1} comes after a sync`).toBe(true);
					acknowledged += 1;
					written = false;
					synced = false;
				}
			}
			expect(acknowledged).toBe(steps);
		} finally {
			await rm(directory, { recursive: true });
		}
	});
});
