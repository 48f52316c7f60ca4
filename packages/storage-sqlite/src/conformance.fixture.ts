import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalLeases, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import type { HarnessFactory } from "@plinth/storage/conformance";
import { createSqliteBackend } from "./sqlite-backend.ts";

/** Creates a storage in a temporary file for one behavior of the conformance suite. */
export const sqliteHarness: HarnessFactory = async ({ limits }) => {
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
};
