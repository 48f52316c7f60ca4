import type { Random } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";

/** Random choices of one seed. */
export class Draw {
	readonly #random: Random;

	constructor(seed: number) {
		this.#random = seededRandom(seed);
	}

	/** An integer from 0 to `end` - 1. */
	below(end: number): number {
		return Math.floor(this.#random.next() * end);
	}

	/** An integer from 0 to `max`: small ones are as likely as large ones. */
	size(max: number): number {
		return Math.min(max, Math.floor((max + 1) ** this.#random.next()) - 1 + this.below(2));
	}

	chance(probability: number): boolean {
		return this.#random.next() < probability;
	}

	/** @throws Error if there is nothing to choose from. */
	pick<T>(values: readonly T[]): T {
		const value = values[this.below(values.length)];
		if (value === undefined) {
			throw new Error("nothing to pick from");
		}
		return value;
	}

	bytes(length: number): Buffer {
		return Buffer.from(Array.from({ length }, () => this.below(256)));
	}
}
