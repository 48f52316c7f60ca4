/** A binary heap: the first element is at the top, and each element sorts before those below it. */
export class Heap<T> {
	readonly #isBefore: (a: T, b: T) => boolean;
	#items: T[] = [];

	constructor(isBefore: (a: T, b: T) => boolean) {
		this.#isBefore = isBefore;
	}

	get size(): number {
		return this.#items.length;
	}

	/** All elements, in no order. */
	items(): readonly T[] {
		return this.#items;
	}

	/** The first element. */
	peek(): T | undefined {
		return this.#items[0];
	}

	push(item: T): void {
		let index = this.#items.push(item) - 1;
		while (index > 0) {
			const parent = (index - 1) >>> 1;
			if (!this.#swapUnlessBefore(parent, index)) {
				return;
			}
			index = parent;
		}
	}

	pop(): T | undefined {
		const first = this.#items[0];
		const last = this.#items.pop();
		if (last !== undefined && this.#items.length > 0) {
			this.#items[0] = last;
			this.#sink(0);
		}
		return first;
	}

	/** Removes all elements for which `keeps` is false. */
	filter(keeps: (item: T) => boolean): void {
		this.#items = this.#items.filter(keeps);
		for (let index = (this.#items.length >>> 1) - 1; index >= 0; index--) {
			this.#sink(index);
		}
	}

	#sink(from: number): void {
		const items = this.#items;
		let index = from;
		for (;;) {
			const left = 2 * index + 1;
			const right = left + 1;
			// Both are below the length.
			const child =
				right < items.length && this.#isBefore(items[right]!, items[left]!) ? right : left;
			if (child >= items.length || !this.#swapUnlessBefore(index, child)) {
				return;
			}
			index = child;
		}
	}

	/** Swaps a parent and its child if the child comes first; both are below the length. */
	#swapUnlessBefore(parent: number, child: number): boolean {
		const items = this.#items;
		const upper = items[parent]!;
		const lower = items[child]!;
		if (!this.#isBefore(lower, upper)) {
			return false;
		}
		items[parent] = lower;
		items[child] = upper;
		return true;
	}
}
