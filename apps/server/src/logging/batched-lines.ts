import type { DestinationStream } from "pino";

/** Lines of pino with the level `info`. */
const informational = '{"level":30,';

/** Characters that are passed on at once. */
const largestBatch = 64 * 1_024;

/**
 * Passes on the lines of one iteration of the event loop together: with many calls at the same time, a system call for
 * each audit line would cost as much as all checks of a write.
 *
 * Only lines with the level `info` wait. All others are passed on at once, with those that wait, because the process may
 * be about to end.
 */
export class BatchedLines implements DestinationStream {
	readonly #destination: DestinationStream;
	#lines = "";
	#isScheduled = false;
	#isExiting = false;

	constructor(destination: DestinationStream) {
		this.#destination = destination;
	}

	write(line: string): void {
		this.#lines += line;
		const mayWait = line.startsWith(informational) && this.#lines.length < largestBatch;
		if (!mayWait || this.#isExiting) {
			this.flush();
		} else if (!this.#isScheduled) {
			this.#isScheduled = true;
			setImmediate(this.#flushScheduled);
		}
	}

	/** Passes on the lines that wait. */
	flush(): void {
		if (this.#lines !== "") {
			const lines = this.#lines;
			this.#lines = "";
			this.#destination.write(lines);
		}
	}

	/** Passes everything on at once from now on: no iteration follows. */
	exit(): void {
		this.#isExiting = true;
		this.flush();
	}

	readonly #flushScheduled = (): void => {
		this.#isScheduled = false;
		this.flush();
	};
}
