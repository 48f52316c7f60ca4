/** How a stream that is no longer known ended; `unknown` if it was never open, or ended too long ago. */
export type Ending = "finished" | "reset" | "forgotten" | "unknown";

/**
 * Remembers the last streams that have ended, by two rings of identifiers: the peer may have sent frames on a stream
 * before it received our RST_STREAM, which are ignored, but none on a stream that it has ended itself, RFC 9113,
 * section 5.1.
 */
export class ClosedStreams {
	readonly #finished: Int32Array;
	readonly #reset: Int32Array;
	#finishedCount = 0;
	#resetCount = 0;

	/** Remembers `capacity` streams that have finished, and as many that this side has reset. */
	constructor(capacity: number) {
		this.#finished = new Int32Array(capacity);
		this.#reset = new Int32Array(capacity);
	}

	/** Both sides have ended the stream, or the peer has reset it. */
	addFinished(id: number): void {
		this.#finished[this.#finishedCount++ % this.#finished.length] = id;
	}

	/** This side has reset the stream. */
	addReset(id: number): void {
		this.#reset[this.#resetCount++ % this.#reset.length] = id;
	}

	endingOf(id: number): Ending {
		if (this.#reset.includes(id)) {
			return "reset";
		}
		if (this.#finished.includes(id)) {
			return "finished";
		}
		return this.#resetCount > this.#reset.length ? "forgotten" : "unknown";
	}
}
