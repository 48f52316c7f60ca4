import type { Clock, Random, Runtime, Timer } from "@plinth/runtime";

/**
 * The lifetime of a server process, from its start to its crash. Nothing continues afterwards: its timers never
 * fire, its tasks never run, and its pending promises never settle.
 *
 *     running ◀──wake── stalled
 *        │  ────stall──▶   │
 *        └──────end───────┴──▶ over
 *
 * While it is stalled, timers, tasks and what others send wait; what it has sent before takes effect.
 */
export class Lifetime {
	readonly #ends = new Set<() => void>();
	readonly #stalls = new Set<() => void>();
	#isOver = false;
	#awake: PromiseWithResolvers<void> | undefined;

	/** Whether the server has crashed. */
	get isOver(): boolean {
		return this.#isOver;
	}

	/** Resolves when it is not stalled. */
	async awake(): Promise<void> {
		while (this.#awake !== undefined) {
			await this.#awake.promise;
		}
	}

	/** Whether it is stalled. */
	get isStalled(): boolean {
		return this.#awake !== undefined;
	}

	/** Stalls the process until `wake`. Does nothing if it is stalled already. */
	stall(): void {
		if (this.#awake === undefined && !this.#isOver) {
			this.#awake = Promise.withResolvers();
			for (const stalled of this.#stalls) {
				stalled();
			}
		}
	}

	/** Lets the process continue. */
	wake(): void {
		this.#awake?.resolve();
		this.#awake = undefined;
	}

	/** Calls the function at each stall, until the returned function is called. */
	onStall(stalled: () => void): () => void {
		this.#stalls.add(stalled);
		return () => this.#stalls.delete(stalled);
	}

	/** Ends the lifetime. */
	end(): void {
		this.#isOver = true;
		for (const end of this.#ends) {
			end();
		}
		this.#ends.clear();
		this.wake();
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
			if (this.isStalled) {
				await this.awake();
			}
			return this.#isOver ? await never() : value;
		} catch (failure) {
			if (this.isStalled) {
				await this.awake();
			}
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
		const whenAwake = (run: () => void) => {
			if (this.isStalled) {
				void this.awake().then(() => whenAwake(run));
			} else if (!this.#isOver) {
				run();
			}
		};
		return {
			random,
			scheduler: {
				schedule(task) {
					if (!isOver()) {
						sim.scheduler.schedule(() => whenAwake(task));
					}
				},
				turn: () => sim.scheduler.turn(),
			},
			clock: {
				now: () => clock.now(),
				monotonic: () => clock.monotonic(),
				setTimer: (delayMs, callback) => this.#timer(clock, delayMs, callback, whenAwake),
			},
		};
	}

	#timer(
		clock: Clock,
		delayMs: number,
		callback: () => void,
		whenAwake: (run: () => void) => void,
	): Timer {
		if (this.#isOver) {
			return { cancel: () => {} };
		}
		let isCanceled = false;
		const timer = clock.setTimer(delayMs, () => {
			forget();
			whenAwake(() => {
				if (!isCanceled) {
					callback();
				}
			});
		});
		const forget = this.onEnd(() => timer.cancel());
		return {
			cancel: () => {
				isCanceled = true;
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
