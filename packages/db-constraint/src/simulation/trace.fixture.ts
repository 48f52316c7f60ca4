import type { Clock } from "@plinth/runtime";

/** A readable log of a simulation, one line per event. Stays empty unless tracing is on. */
export class Trace {
	readonly lines: string[] = [];
	readonly #clock: Clock;
	readonly #isEnabled: boolean;

	constructor(clock: Clock, isEnabled: boolean) {
		this.#clock = clock;
		this.#isEnabled = isEnabled;
	}

	/** Adds a line. */
	add(source: string, message: () => string): void {
		if (this.#isEnabled) {
			const at = (this.#clock.monotonic() / 1_000).toFixed(3);
			this.lines.push(`${at.padStart(9)}  ${source.padEnd(9)} ${message()}`);
		}
	}
}
