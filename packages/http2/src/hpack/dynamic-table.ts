/** The size that a table adds for each entry to that of its name and value, RFC 7541, section 4.1. */
const entryOverhead = 32;

/** The size of a field in a table and in a header list. */
export function fieldSize(name: string, value: string): number {
	return name.length + value.length + entryOverhead;
}

/**
 * The dynamic table of RFC 7541, section 2.3.2, first in, first out.
 *
 *     #names  ring of at most maxSize / 32 names, #values alike
 *
 *             oldest                    newest
 *     ┌─────┬────────┬───────┬───────┬────────┬─────┐
 *     │     │   3    │   2   │   1   │   0    │     │     the age by which entries are read
 *     └─────┴────────┴───────┴───────┴────────┴─────┘
 *                                               inserted % capacity
 *
 * Invariants: `size` is the sum of the entries' sizes and at most `maxSize`; `generation` changes whenever an
 * index may mean another field than before.
 */
export class DynamicTable {
	readonly #names: string[] = [];
	readonly #values: string[] = [];
	readonly #capacity: number;
	readonly #onEvict: ((name: string, value: string, number: number) => void) | undefined;
	#inserted = 0;
	#count = 0;
	#size = 0;
	#maxSize: number;
	#generation = 0;

	/** `limit` is the largest `maxSize` that the table will ever have, in bytes. */
	constructor(limit: number, onEvict?: (name: string, value: string, number: number) => void) {
		this.#maxSize = limit;
		this.#capacity = Math.max(1, Math.floor(limit / entryOverhead));
		this.#onEvict = onEvict;
	}

	get count(): number {
		return this.#count;
	}

	get size(): number {
		return this.#size;
	}

	get maxSize(): number {
		return this.#maxSize;
	}

	get generation(): number {
		return this.#generation;
	}

	/** The number of entries inserted so far, which is the number of the next one. */
	get inserted(): number {
		return this.#inserted;
	}

	/** The name of an entry, 0 being the newest; undefined if the table has fewer. */
	nameAt(age: number): string | undefined {
		return age < this.#count ? this.#names[(this.#inserted - 1 - age) % this.#capacity] : undefined;
	}

	valueAt(age: number): string | undefined {
		return age < this.#count
			? this.#values[(this.#inserted - 1 - age) % this.#capacity]
			: undefined;
	}

	/** A field larger than the table empties it, and is not inserted. */
	insert(name: string, value: string): void {
		this.#generation++;
		const size = fieldSize(name, value);
		this.#evictDownTo(this.#maxSize - size);
		if (size > this.#maxSize) {
			return;
		}
		const slot = this.#inserted % this.#capacity;
		this.#names[slot] = name;
		this.#values[slot] = value;
		this.#inserted++;
		this.#count++;
		this.#size += size;
	}

	/** Sets the maximum size, which must not exceed the limit of the constructor. */
	resize(maxSize: number): void {
		this.#generation++;
		this.#maxSize = maxSize;
		this.#evictDownTo(maxSize);
	}

	#evictDownTo(size: number): void {
		while (this.#count > 0 && this.#size > size) {
			const number = this.#inserted - this.#count;
			const slot = number % this.#capacity;
			const name = this.#names[slot] ?? "";
			const value = this.#values[slot] ?? "";
			this.#names[slot] = "";
			this.#values[slot] = "";
			this.#size -= fieldSize(name, value);
			this.#count--;
			this.#onEvict?.(name, value, number);
		}
	}
}
