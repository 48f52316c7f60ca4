/**
 * Runs actions that share a key one after the other, in the order of their calls; others concurrently. An action waits
 * for the last one of each of its keys, as of its call: so two actions never wait for each other.
 */
export class Turns {
	readonly #last = new Map<string, Promise<void>>();

	/** Runs an action in its turn. A failure of it concerns no other. */
	async run<T>(keys: Iterable<string>, action: () => Promise<T>): Promise<T> {
		const own = Promise.withResolvers<void>();
		const names = new Set(keys);
		const before: Promise<void>[] = [];
		for (const name of names) {
			const last = this.#last.get(name);
			if (last !== undefined) {
				before.push(last);
			}
			this.#last.set(name, own.promise);
		}
		await Promise.all(before);
		try {
			return await action();
		} finally {
			for (const name of names) {
				if (this.#last.get(name) === own.promise) {
					this.#last.delete(name);
				}
			}
			own.resolve();
		}
	}

	/** The number of keys with actions that run or wait. */
	get size(): number {
		return this.#last.size;
	}
}
