import type { Random, Scheduler } from "@plinth/runtime";
import type { FakeClock } from "@plinth/runtime/testing";

/**
 * Runs what may overlap in an order that a seed decides. Everything that waits, waits here or on
 * the clock:
 *
 * ```
 *   schedule(task) ──▶ ready: [ t1, t2, t3, … ] ──▶ one of them, drawn
 *                           ▲                         │ its promises settle, and add tasks
 *                           └─────────────────────────┘
 *   nothing ready ──▶ the clock moves to the next timer
 * ```
 *
 * One task runs at a time, and the next is drawn only when no promise is left that can settle by
 * itself, so that a run depends on nothing but the seed.
 */
export class SeededScheduler implements Scheduler {
	readonly #random: Random;
	readonly #clock: FakeClock;
	readonly #ready: (() => void)[] = [];

	constructor(random: Random, clock: FakeClock) {
		this.#random = random;
		this.#clock = clock;
	}

	schedule(task: () => void): void {
		this.#ready.push(task);
	}

	/** Waits for a turn: anything else that is ready may run before. */
	pause(): Promise<void> {
		return new Promise((resolve) => this.schedule(resolve));
	}

	/** Runs what there is to run, timers included, until the promise has settled. */
	async run<T>(main: Promise<T>): Promise<T> {
		let settled = false;
		const settle = () => {
			settled = true;
		};
		main.then(settle, settle);
		for (await allSettled(); !settled; await allSettled()) {
			if (this.#runOne()) {
				continue;
			}
			const nextMs = this.#clock.nextTimerMs();
			if (nextMs === undefined) {
				throw new Error("nothing is left to run, and the simulation has not ended");
			}
			this.#clock.advance(nextMs);
		}
		return main;
	}

	/** Runs what is ready until nothing is. The clock stands still. */
	async drain(): Promise<void> {
		do {
			await allSettled();
		} while (this.#runOne());
	}

	#runOne(): boolean {
		const index = Math.floor(this.#random.next() * this.#ready.length);
		const task = this.#ready[index];
		if (task === undefined) {
			return false;
		}
		const last = this.#ready.pop();
		if (last !== undefined && index < this.#ready.length) {
			this.#ready[index] = last;
		}
		task();
		return true;
	}
}

/** Resolves when all promises that can settle by themselves have settled. */
function allSettled(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}
