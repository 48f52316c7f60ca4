import { LocalLeases, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, it } from "vitest";
import { describeConformance } from "./conformance/index.ts";
import { createMemoryBackend } from "./memory-backend.ts";

describeConformance(
	"the in-memory backend",
	async ({ limits }) => {
		const clock = new FakeClock();
		const leases = new LocalLeases();
		const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
		const backend = createMemoryBackend({ runtime, leases, limits });
		return {
			backend,
			leases,
			elapse: (byMs) => clock.advanceAsync(byMs),
			dispose: () => backend.close(),
		};
	},
	{ describe, it },
);
