import { sleep } from "@plinth/runtime";
import { type SeededRuntime, seededRandom } from "@plinth/runtime/testing";

/** The longest that something waits on its way while faults are on, in milliseconds. */
const longestDelayMs = 1_500;

/** What the network and the storages do to what passes them: the seed decides. */
export class Faults {
	readonly runtime: SeededRuntime;
	/** Whether faults are on: then anything may fail or be late. */
	areOn = false;
	readonly #random: { next(): number };

	constructor(runtime: SeededRuntime, seed: number) {
		this.runtime = runtime;
		this.#random = seededRandom(seed);
	}

	/** Whether something of this probability happens. Also while faults are off. */
	happens(chance: number): boolean {
		return this.#random.next() < chance;
	}

	/** Whether a fault of this probability happens. */
	strikes(chance: number): boolean {
		return this.areOn && this.#random.next() < chance;
	}

	/** A number from 0, below `limit`. */
	below(limit: number): number {
		return Math.floor(this.#random.next() * limit);
	}

	/** One of several. */
	pick<T>(from: readonly T[]): T | undefined {
		return from[this.below(from.length)];
	}

	/** The delay of one step: some turns, and while faults are on, at times much longer. */
	async delay(): Promise<void> {
		while (this.happens(0.3)) {
			await this.runtime.scheduler.pause();
		}
		if (this.strikes(0.03)) {
			await this.wait(longestDelayMs);
		}
	}

	/** Waits up to that many milliseconds. */
	wait(longestMs: number): Promise<void> {
		return sleep(this.runtime.clock, this.#random.next() * longestMs);
	}
}
