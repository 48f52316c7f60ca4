import type { Clock, Random, Runtime, Timer } from "@plinth/runtime";

/**
 * One life of a server, from its start to its crash. Nothing that it began goes on afterwards: its
 * timers never fire, its tasks never run, and what it waits for never comes.
 */
export class Lifetime {
	readonly #ends = new Set<() => void>();
	#isOver = false;

	/** Whether it has crashed. */
	get isOver(): boolean {
		return this.#isOver;
	}

	/** The end. */
	end(): void {
		this.#isOver = true;
		for (const end of this.#ends) {
			end();
		}
		this.#ends.clear();
	}

	/** Calls it at the end, unless what is returned is called before. */
	onEnd(end: () => void): () => void {
		this.#ends.add(end);
		return () => this.#ends.delete(end);
	}

	/** What happens in this life: the same, and nothing once it is over. */
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

	/** What somebody else sees of it: the promise, or the failure where the life ends before. */
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

	/** A runtime whose tasks and timers end with this life. */
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

/** What a dead server waits for. */
export function never(): Promise<never> {
	// One for each who waits: a promise keeps alive whatever waits for it.
	return new Promise(() => {});
}
