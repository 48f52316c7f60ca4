import type { Runtime } from "../runtime.ts";
import type { FakeClock } from "./fake-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { SeededScheduler, type SeededSchedulerOptions } from "./seeded-scheduler.ts";

/** A world that one seed decides: time stands still or is moved, and tasks run when they are told to. */
export interface SeededRuntime extends Runtime {
	readonly clock: FakeClock;
	readonly scheduler: SeededScheduler;
}

/** Makes a world of its own for a test. Whatever it does is replayed by the same seed. */
export function seededRuntime(options: SeededSchedulerOptions): SeededRuntime {
	const scheduler = new SeededScheduler(options);
	// Streams of their own: drawing an identifier must not change who runs next.
	return { scheduler, clock: scheduler.clock, random: seededRandom(~options.seed) };
}
