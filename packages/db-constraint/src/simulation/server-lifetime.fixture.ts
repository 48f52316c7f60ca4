import type { Clock, Random, Runtime, Timer } from "@plinth/runtime";

/**
 * The lifetime of a server process, from its start to its crash. Nothing continues afterwards: its timers never
 * fire, its tasks never run, and its pending promises never settle.
 */
export class Lifetime {
	readonly #ends = new Set<() => void>();
	#isOver = false;

	/** Whether the server has crashed. */
	get isOver(): boolean {
		return this.#isOver;
	}

	/** Ends the lifetime. */
	end(): void {
		this.#isOver = true;
		for (const end of this.#ends) {
			end();
		}
		this.#ends.clear();
	}

	/** Calls the function at the end, unless the returned function is called before. */
	onEnd(end: () => void): () => void {
		this.#ends.add(end);
		return () => this.#ends.delete(end);
	}

	/** The promise as seen by the server: it never settles once the lifetime is over. */
	async within<T>(promise: Promise<T>): Promise<T> {
		try {
			const value = await promise;
			return this.#isOver ? await never() : value;
		} catch (failure) {
			if (this.#isOver) {
				await never();
			}
			throw failure;
		}
	}

	/** The promise as seen by others: it rejects with the failure if the lifetime ends first. */
	observe<T>(promise: Promise<T>, failure: () => unknown): Promise<T> {
		return new Promise((resolve, reject) => {
			if (this.#isOver) {
				reject(failure());
				return;
			}
			const forget = this.onEnd(() => reject(failure()));
			promise.then(
				(value) => {
					forget();
					resolve(value);
				},
				(reason) => {
					forget();
					reject(reason);
				},
			);
		});
	}

	/** A runtime whose tasks and timers end with this lifetime. */
	runtime(sim: Runtime, clock: Clock, random: Random): Runtime {
		const isOver = () => this.#isOver;
		return {
			random,
			scheduler: {
				schedule(task) {
					if (!isOver()) {
						sim.scheduler.schedule(() => {
							if (!isOver()) {
								task();
							}
						});
					}
				},
				turn: () => sim.scheduler.turn(),
			},
			clock: {
				now: () => clock.now(),
				monotonic: () => clock.monotonic(),
				setTimer: (delayMs, callback) => this.#timer(clock, delayMs, callback),
			},
		};
	}

	#timer(clock: Clock, delayMs: number, callback: () => void): Timer {
		if (this.#isOver) {
			return { cancel: () => {} };
		}
		const timer = clock.setTimer(delayMs, () => {
			forget();
			if (!this.#isOver) {
				callback();
			}
		});
		const forget = this.onEnd(() => timer.cancel());
		return {
			cancel: () => {
				forget();
				timer.cancel();
			},
		};
	}
}

/** A promise that never settles, for crashed servers. */
export function never(): Promise<never> {
	// A new one for each caller: a shared promise would keep all of its waiters alive.
	return new Promise(() => {});
}
