const smallest = 64;

/** 2^32 divided by the golden ratio: spreads consecutive identifiers (Knuth, The Art of Computer Programming, 6.4). */
const multiplier = 0x9e37_79b1;

/**
 * The open streams of a connection by their identifiers: a hash table with linear probing. Not a `Map`, for the reason
 * that `LinkedList` gives: streams come and go with every call.
 *
 * ```
 * slots   │   │ 5 │ 7 │ 13 │   │   │ 3 │   │     13 belongs into the slot of 5, and is in the next free one
 * ```
 *
 * Invariants: between the slot that a stream belongs into and the slot that it is in, no slot is free; at most half of
 * the slots are used. The table grows to the number of streams that a connection may have, and does not shrink.
 */
export class StreamTable<Stream extends { readonly id: number }> implements Iterable<Stream> {
	#slots: (Stream | undefined)[] = new Array(smallest).fill(undefined);
	#shift = 32 - Math.log2(smallest);
	#size = 0;

	/** The number of streams. */
	get size(): number {
		return this.#size;
	}

	get(id: number): Stream | undefined {
		return this.#slots[this.#slotOf(id)];
	}

	/** Adds a stream whose identifier is not in the table. */
	add(stream: Stream): void {
		if (this.#size * 2 >= this.#slots.length) {
			this.#grow();
		}
		this.#slots[this.#slotOf(stream.id)] = stream;
		this.#size += 1;
	}

	/** Returns whether the stream was in the table. */
	delete(stream: Stream): boolean {
		let free = this.#slotOf(stream.id);
		if (this.#slots[free] !== stream) {
			return false;
		}
		const last = this.#slots.length - 1;
		for (let slot = (free + 1) & last; ; slot = (slot + 1) & last) {
			const next = this.#slots[slot];
			if (next === undefined) {
				break;
			}
			// Moves it if the free slot is between the one that it belongs into and the one that it is in.
			const distance = (slot - this.#homeOf(next.id)) & last;
			if (distance >= ((slot - free) & last)) {
				this.#slots[free] = next;
				free = slot;
			}
		}
		this.#slots[free] = undefined;
		this.#size -= 1;
		return true;
	}

	clear(): void {
		this.#slots.fill(undefined);
		this.#size = 0;
	}

	/** The streams as they are when the iteration begins, in no order. */
	[Symbol.iterator](): Iterator<Stream> {
		return this.#slots.filter((each) => each !== undefined)[Symbol.iterator]();
	}

	/** The slot that an identifier belongs into. */
	#homeOf(id: number): number {
		return Math.imul(id, multiplier) >>> this.#shift;
	}

	/** The slot that the identifier is in, or the free one that it would be added to. */
	#slotOf(id: number): number {
		const last = this.#slots.length - 1;
		let slot = this.#homeOf(id);
		for (let found = this.#slots[slot]; found !== undefined && found.id !== id; ) {
			slot = (slot + 1) & last;
			found = this.#slots[slot];
		}
		return slot;
	}

	#grow(): void {
		const before = this.#slots;
		this.#slots = new Array(before.length * 2).fill(undefined);
		this.#shift -= 1;
		for (const stream of before) {
			if (stream !== undefined) {
				this.#slots[this.#slotOf(stream.id)] = stream;
			}
		}
	}
}
