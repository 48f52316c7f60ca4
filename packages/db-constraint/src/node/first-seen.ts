import type { Clock } from "@plinth/runtime";

/**
 * When things were first seen, on the monotonic clock of this server: what expires is counted from
 * there, so that neither a clock that is off nor a restart makes anything expire early. Bounded: it
 * knows only what was seen in the last pass over each shadow.
 */
export class FirstSeen {
	readonly #clock: Clock;
	readonly #seen = new Map<string, Map<string, number>>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Forgets what a shadow no longer has. */
	keep(shadow: string, things: readonly string[]): void {
		const seen = this.#seen.get(shadow);
		if (things.length === 0) {
			this.#seen.delete(shadow);
		} else if (seen !== undefined) {
			for (const thing of seen.keys()) {
				if (!things.includes(thing)) {
					seen.delete(thing);
				}
			}
		}
	}

	/** Sees a thing for the first time, whatever was seen of it before. */
	reestablish(shadow: string, thing: string): void {
		this.#seen.get(shadow)?.delete(thing);
		this.age(shadow, thing);
	}

	/** For how many milliseconds a thing of a shadow has been seen; 0 at first. */
	age(shadow: string, thing: string): number {
		const now = this.#clock.monotonic();
		let seen = this.#seen.get(shadow);
		if (seen === undefined) {
			seen = new Map();
			this.#seen.set(shadow, seen);
		}
		const first = seen.get(thing);
		if (first === undefined) {
			seen.set(thing, now);
			return 0;
		}
		return now - first;
	}
}
