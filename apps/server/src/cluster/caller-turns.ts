/** A caller: its subject or, without a token, its connection. */
export type Caller = string | object;

/** Lets each caller do a number of things at once: more of them wait for their turn, in order. */
export class CallerTurns {
	readonly #concurrency: number;
	readonly #callers = new Map<Caller, CallerState>();

	constructor(concurrency: number) {
		this.#concurrency = concurrency;
	}

	/**
	 * Resolves when it is the caller's turn, which lasts until it is disposed of.
	 *
	 * @throws the signal's reason.
	 */
	async take(caller: Caller, signal: AbortSignal): Promise<Disposable> {
		signal.throwIfAborted();
		const state = this.#callers.get(caller) ?? { taken: 0, waiting: new Set() };
		this.#callers.set(caller, state);
		if (state.taken < this.#concurrency) {
			state.taken += 1;
		} else {
			await inTurn(state.waiting, signal);
		}
		return { [Symbol.dispose]: () => this.#release(caller, state) };
	}

	/** Passes a turn to the next that waits. */
	#release(caller: Caller, state: CallerState): void {
		const [next] = state.waiting;
		if (next !== undefined) {
			state.waiting.delete(next);
			next();
			return;
		}
		state.taken -= 1;
		if (state.taken === 0) {
			this.#callers.delete(caller);
		}
	}
}

interface CallerState {
	taken: number;
	readonly waiting: Set<() => void>;
}

/** Resolves when it is called from among those that wait. */
async function inTurn(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
	const { promise, resolve, reject } = Promise.withResolvers<void>();
	const onAbort = () => {
		// Unless it has just received a turn.
		if (waiting.delete(resolve)) {
			reject(signal.reason);
		}
	};
	waiting.add(resolve);
	signal.addEventListener("abort", onAbort, { once: true });
	try {
		await promise;
	} finally {
		signal.removeEventListener("abort", onAbort);
	}
}
