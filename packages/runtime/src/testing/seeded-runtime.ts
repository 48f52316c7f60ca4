import type { Runtime } from "../runtime.ts";
import type { FakeClock } from "./fake-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { SeededScheduler, type SeededSchedulerOptions } from "./seeded-scheduler.ts";

/** A runtime determined by one seed: time moves and tasks run only when a test says so. */
export interface SeededRuntime extends Runtime {
	readonly clock: FakeClock;
	readonly scheduler: SeededScheduler;
}

/** Creates a runtime for a test. The same seed replays the same run. */
export function seededRuntime(options: SeededSchedulerOptions): SeededRuntime {
	const scheduler = new SeededScheduler(options);
	// Separate streams: drawing an identifier must not change the order of tasks.
	return { scheduler, clock: scheduler.clock, random: seededRandom(~options.seed) };
}
