import { type Clock, systemClock } from "./clock.ts";
import { type Random, systemRandom } from "./random.ts";
import { type Scheduler, systemScheduler } from "./scheduler.ts";

/** Everything that a component needs of the world and a test wants to hold: a parameter. */
export interface Runtime {
	readonly clock: Clock;
	readonly random: Random;
	readonly scheduler: Scheduler;
}

/** The real world. */
export const systemRuntime: Runtime = {
	clock: systemClock,
	random: systemRandom,
	scheduler: systemScheduler,
};
