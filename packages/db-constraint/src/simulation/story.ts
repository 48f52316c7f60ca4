import type { Clock } from "@plinth/runtime";

/** What happened, line by line, for people; nothing is kept where nobody wants to know. */
export class Story {
	readonly lines: string[] = [];
	readonly #clock: Clock;
	readonly #tells: boolean;

	constructor(clock: Clock, tells: boolean) {
		this.#clock = clock;
		this.#tells = tells;
	}

	/** Adds a line. */
	tell(who: string, what: () => string): void {
		if (this.#tells) {
			const at = (this.#clock.monotonic() / 1_000).toFixed(3);
			this.lines.push(`${at.padStart(9)}  ${who.padEnd(9)} ${what()}`);
		}
	}
}
