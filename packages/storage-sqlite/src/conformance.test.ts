import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalLeases, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describeConformance } from "@plinth/storage/conformance";
import { describe, it } from "vitest";
import { createSqliteBackend } from "./sqlite-backend.ts";

describeConformance(
	"the SQLite backend",
	async ({ limits }) => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-sqlite-"));
		const clock = new FakeClock();
		const leases = new LocalLeases();
		const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
		const path = join(directory, "storage.db");
		const backend = await createSqliteBackend({ path, runtime, leases, limits });
		return {
			backend,
			leases,
			elapse: (byMs) => clock.advanceAsync(byMs),
			dispose: async () => {
				await backend.close();
				await rm(directory, { recursive: true });
			},
		};
	},
	{ describe, it },
);
