/** The number of slots of an empty table. Numbers of slots are powers of 2. */
const smallest = 64;

/**
 * A prime close to 2^32 divided by the golden ratio: multiplying by it spreads consecutive identifiers over the slots
 * (Knuth, The Art of Computer Programming, section 6.4).
 */
const multiplier = 0x9e37_79b1;

/**
 * The open streams of a connection, by their identifiers: a hash table with linear probing. A `Map` would be expensive,
 * because each call adds and removes a stream: `LinkedList` of `@plinth/runtime` explains why.
 *
 * The hash of an identifier determines the home slot of its stream. If that slot is used when the stream is added, the
 * stream goes into the next free slot. After the last slot comes the first.
 *
 * ```
 * slots   │   │ 5 │ 7 │ 13 │   │   │ 3 │   │     the home slot of 13 is that of 5: 13 is in the next free one
 * ```
 *
 * Invariants: no slot is free between the home slot of a stream and the slot that the stream is in; at most half of the
 * slots are used, so that each search reaches a free slot. The number of slots doubles when necessary and never
 * shrinks. It is bounded, because the number of a connection's open streams is.
 */
export class StreamTable<Stream extends { readonly id: number }> implements Iterable<Stream> {
	#slots: (Stream | undefined)[] = new Array(smallest).fill(undefined);
	#shift = 32 - Math.log2(smallest);
	#size = 0;

	/** The number of streams. */
	get size(): number {
		return this.#size;
	}

	/** The stream with an identifier, if it is in the table. */
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

	/** Removes a stream. Returns whether it was in the table. */
	delete(stream: { readonly id: number }): boolean {
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
			// The free slot must not be between the home slot of `next` and its present slot: if it is, `next` moves into it.
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

	/** Removes all streams. */
	clear(): void {
		this.#slots.fill(undefined);
		this.#size = 0;
	}

	/** The streams that are in the table when the iteration begins, in no particular order. */
	[Symbol.iterator](): Iterator<Stream> {
		return this.#slots.filter((each) => each !== undefined)[Symbol.iterator]();
	}

	/** The home slot of an identifier. */
	#homeOf(id: number): number {
		return Math.imul(id, multiplier) >>> this.#shift;
	}

	/** The slot of the stream with an identifier; if there is none, the free slot that it would be added to. */
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
