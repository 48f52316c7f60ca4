import { isPlanted } from "../fault-points.ts";

/** A queue of shadow names. A name that is put several times before it is read is read once. */
export class NameQueue {
	readonly #waiting = new Set<string>();
	#wake = Promise.withResolvers<void>();

	/** Adds a name. */
	put(name: string): void {
		this.#waiting.add(name);
		if (!isPlanted("put names of shadows without waking their reader")) {
			this.#wake.resolve();
		}
	}

	/** The names until the signal aborts. For one reader at a time. */
	async *names(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
		const stop = () => this.#wake.resolve();
		signal.addEventListener("abort", stop, { once: true });
		try {
			while (!signal.aborted) {
				for (const name of this.#waiting) {
					this.#waiting.delete(name);
					yield name;
				}
				if (this.#waiting.size === 0 && !signal.aborted) {
					this.#wake = Promise.withResolvers();
					await this.#wake.promise;
				}
			}
		} finally {
			signal.removeEventListener("abort", stop);
		}
	}
}
