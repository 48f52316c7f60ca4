import { LocalLeases, type Scheduler, systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { describe, it } from "vitest";
import { describeConformance, type Harness } from "./conformance/index.ts";
import type { StorageLimits } from "./limits.ts";
import { createMemoryBackend } from "./memory-backend.ts";

function harness(scheduler: Scheduler, limits: Partial<StorageLimits>): Harness {
	const clock = new FakeClock();
	const leases = new LocalLeases();
	const runtime = { clock, random: systemRandom, scheduler };
	const backend = createMemoryBackend({ runtime, leases, limits });
	return {
		backend,
		leases,
		elapse: (byMs) => clock.advanceAsync(byMs),
		dispose: () => backend.close(),
	};
}

/** Runs what was scheduled in one iteration of the event loop in the next one or later, in any order. */
function shufflingScheduler(seed: number): Scheduler {
	const random = seededRandom(seed);
	const tasks: (() => void)[] = [];
	function runSome(): void {
		do {
			const [task] = tasks.splice(Math.floor(random.next() * tasks.length), 1);
			task?.();
		} while (tasks.length > 0 && random.next() < 0.7);
		if (tasks.length > 0) {
			setImmediate(runSome);
		}
	}
	return {
		schedule: (task) => {
			if (tasks.push(task) === 1) {
				setImmediate(runSome);
			}
		},
		turn: () => undefined,
	};
}

describeConformance(
	"the in-memory backend",
	async ({ limits }) => harness(systemScheduler, limits),
	{ describe, it },
);

let seed = 0;
describeConformance(
	"the in-memory backend, whose watches wake late and in any order,",
	async ({ limits }) => harness(shufflingScheduler(++seed), limits),
	{ describe, it },
);
