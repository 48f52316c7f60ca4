import { type Clock, systemClock } from "./clock.ts";
import { type Random, systemRandom } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";
import { systemScheduler } from "./system-scheduler.ts";

/** The environment of a component, as a parameter that tests can control. */
export interface Runtime {
	readonly clock: Clock;
	readonly random: Random;
	readonly scheduler: Scheduler;
}

/** The real clock, randomness and scheduler of this process. */
export const systemRuntime: Runtime = {
	clock: systemClock,
	random: systemRandom,
	scheduler: systemScheduler,
};
