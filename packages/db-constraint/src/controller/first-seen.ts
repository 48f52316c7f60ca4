import type { Clock } from "@plinth/runtime";

/**
 * The times at which this server first saw items of shadows, on its monotonic clock. Expiries count from
 * there, so that neither a wrong clock nor a restart makes anything expire early. Bounded: contains only the
 * items of the last pass over each shadow.
 */
export class FirstSeen {
	readonly #clock: Clock;
	readonly #times = new Map<string, Map<string, number>>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Removes the items that a shadow no longer has. */
	retain(shadow: string, items: readonly string[]): void {
		const times = this.#times.get(shadow);
		if (items.length === 0) {
			this.#times.delete(shadow);
		} else if (times !== undefined) {
			for (const item of times.keys()) {
				if (!items.includes(item)) {
					times.delete(item);
				}
			}
		}
	}

	/** Restarts the age of an item at 0. */
	restart(shadow: string, item: string): void {
		this.#times.get(shadow)?.delete(item);
		this.age(shadow, item);
	}

	/** The age of an item of a shadow in milliseconds; 0 at first. */
	age(shadow: string, item: string): number {
		const now = this.#clock.monotonic();
		let times = this.#times.get(shadow);
		if (times === undefined) {
			times = new Map();
			this.#times.set(shadow, times);
		}
		const first = times.get(item);
		if (first === undefined) {
			times.set(item, now);
			return 0;
		}
		return now - first;
	}
}
