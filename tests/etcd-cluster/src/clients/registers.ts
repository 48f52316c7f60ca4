import { randomUUID } from "node:crypto";
import type { Random } from "@plinth/runtime";

/** How many registers are in use at a time, and for how many operations each: histories stay short. */
const inUse = 6;
const operationsEach = 150;

/** The registers that clients use. */
export class Registers {
	readonly #random: Random;
	readonly #slots: { name: string; left: number }[] = [];
	#made = 0;
	#texts = 0;
	readonly #textPrefix = randomUUID().slice(0, 8);

	constructor(random: Random) {
		this.#random = random;
		for (let slot = 0; slot < inUse; slot += 1) {
			// They do not all end at the same time.
			this.#slots.push(this.#make(operationsEach - slot * 20));
		}
	}

	/** A register to do something with. */
	pick(): string {
		const index = Math.floor(this.#random.next() * inUse);
		const slot = this.#slots[index];
		if (slot === undefined) {
			throw new RangeError(`no register ${index}`);
		}
		slot.left -= 1;
		if (slot.left === 0) {
			this.#slots[index] = this.#make(operationsEach);
		}
		return slot.name;
	}

	/** A text that nobody else writes. */
	text(): string {
		this.#texts += 1;
		return `${this.#textPrefix}-${this.#texts}`;
	}

	#make(left: number) {
		this.#made += 1;
		return { name: `r-${this.#made}`, left };
	}
}
