/** An action that runs or waits. */
interface Turn {
	readonly keys: ReadonlySet<string>;
	/** Resolves when the action may begin. */
	readonly start: PromiseWithResolvers<void>;
}

/**
 * Runs actions that share a key one after the other, in the order of their calls; others concurrently. An action waits
 * for those before it in the queue of each of its keys. It joins all these queues at once, so two actions never wait
 * for each other.
 */
export class Turns {
	/** By key. The first of a queue runs, or waits for its other keys. */
	readonly #queues = new Map<string, Set<Turn>>();

	/**
	 * Runs an action in its turn. A failure of it concerns no other.
	 *
	 * @param signal - while the action waits, an abort removes it from the queues, and the call rejects with the reason.
	 *   Once the action has begun, the signal is up to the action.
	 */
	async run<T>(keys: Iterable<string>, action: () => Promise<T>, signal?: AbortSignal): Promise<T> {
		signal?.throwIfAborted();
		const turn: Turn = { keys: new Set(keys), start: Promise.withResolvers() };
		this.#join(turn);
		const onAbort = () => turn.start.reject(signal?.reason);
		signal?.addEventListener("abort", onAbort, { once: true });
		try {
			await turn.start.promise;
			signal?.throwIfAborted();
			return await action();
		} finally {
			signal?.removeEventListener("abort", onAbort);
			this.#leave(turn);
		}
	}

	/** The number of keys with actions that run or wait. */
	get size(): number {
		return this.#queues.size;
	}

	#join(turn: Turn): void {
		for (const key of turn.keys) {
			const queue = this.#queues.get(key) ?? new Set();
			this.#queues.set(key, queue.add(turn));
		}
		this.#startIfFirst(turn);
	}

	#leave(turn: Turn): void {
		for (const key of turn.keys) {
			const queue = this.#queues.get(key);
			queue?.delete(turn);
			const next = first(queue);
			if (next === undefined) {
				this.#queues.delete(key);
			} else {
				this.#startIfFirst(next);
			}
		}
	}

	#startIfFirst(turn: Turn): void {
		if ([...turn.keys].every((key) => first(this.#queues.get(key)) === turn)) {
			turn.start.resolve();
		}
	}
}

function first<T>(items: Iterable<T> = []): T | undefined {
	for (const item of items) {
		return item;
	}
	return undefined;
}
