import type { Io } from "../io.ts";

/** Work that ends sooner shows no progress. */
const afterMs = 500;
const everyMs = 100;

/** A line at the end of the output that shows the progress of work: in a terminal only. */
export class ProgressLine {
	readonly #io: Io;
	#nextMs: number;
	#shown = "";

	constructor(io: Io) {
		this.#io = io;
		this.#nextMs = io.clock.monotonic() + afterMs;
	}

	/** Shows a text instead of the last one, or not, if that was shown only just now. */
	show(text: string): void {
		const { width, clock, out } = this.#io;
		if (width === undefined || clock.monotonic() < this.#nextMs) {
			return;
		}
		this.clear();
		this.#nextMs = clock.monotonic() + everyMs;
		// The last column stays free: some terminals would begin a new line.
		this.#shown = text.slice(0, Math.max(0, width - 1));
		out(this.#shown);
	}

	/** Removes the line. Call it before other output. */
	clear(): void {
		if (this.#shown !== "") {
			this.#io.out(`\r${" ".repeat(this.#shown.length)}\r`);
			this.#shown = "";
		}
	}
}
