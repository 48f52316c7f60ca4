import type { Clock } from "@plinth/runtime";
import { cacheLimits } from "./cache-limits.ts";

/**
 * Tells whether the machine was suspended. Its monotonic clock may stand still then, but its wall clock does not: what is only
 * timed by the monotonic clock would seem to be recent after any time.
 */
export class Suspension {
	readonly #clock: Clock;
	/** The wall clock minus the monotonic one, as it was seen last. */
	#offsetMs: number;

	constructor(clock: Clock) {
		this.#clock = clock;
		this.#offsetMs = clock.now() - clock.monotonic();
	}

	/** Whether the machine was suspended since the last call of this method, or since this object was created. */
	wasSuspended(): boolean {
		const offsetMs = this.#clock.now() - this.#clock.monotonic();
		const forwardMs = offsetMs - this.#offsetMs;
		this.#offsetMs = offsetMs;
		return forwardMs >= cacheLimits.suspendedMs;
	}
}
