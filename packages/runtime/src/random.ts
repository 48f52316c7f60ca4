import { randomFillSync } from "node:crypto";

/** Randomness as a parameter. */
export interface Random {
	/** A number in [0, 1), uniformly distributed. */
	next(): number;
}

class SystemRandom implements Random {
	// Many numbers per system call: the call costs about a microsecond, a buffered number a few
	// nanoseconds.
	readonly #buffer = new Uint32Array(1024);
	#used = this.#buffer.length;

	next(): number {
		if (this.#used === this.#buffer.length) {
			randomFillSync(this.#buffer);
			this.#used = 0;
		}
		const value = this.#buffer[this.#used] ?? 0;
		this.#used += 1;
		return value / 2 ** 32;
	}
}

/** The randomness of the machine: unpredictable, fit for identifiers. */
export const systemRandom: Random = new SystemRandom();
