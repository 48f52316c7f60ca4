/** The items of a list at one time, in order, in chunks. Immutable. */
export type Chunks<T> = readonly (readonly T[])[];

/**
 * A sorted list of items, none equal to another.
 *
 * ```
 *   chunks ──▶ [ ● , ● , ● ]
 *                │   │   └─▶ [ t … z ]
 *                │   └─────▶ [ m … s ]        at most `chunkSize` items each, none empty
 *                └─────────▶ [ a … l ]
 * ```
 *
 * Two levels are enough: at a million items the outer array has some 6,000 entries, which are moved in a
 * microsecond, once per a few hundred inserts.
 *
 * `share` returns the chunks without copying. After that, a write copies the outer array and the chunk
 * that it changes, each only once: `generation` is when a part was last copied.
 */
export class SortedList<T> {
	readonly #before: (a: T, b: T) => boolean;
	#chunks: T[][] = [];
	/** Per chunk: the generation in which it was copied. */
	#owned: number[] = [];
	#outerOwned = 0;
	#generation = 0;
	#size = 0;

	/** `sorted` must be in the order of `before`; it is copied. */
	constructor(before: (a: T, b: T) => boolean, sorted: readonly T[] = []) {
		this.#before = before;
		for (let from = 0; from < sorted.length; from += fill) {
			this.#chunks.push(sorted.slice(from, from + fill));
			this.#owned.push(0);
		}
		this.#size = sorted.length;
	}

	get size(): number {
		return this.#size;
	}

	/** The first item; `undefined` if the list is empty. */
	get first(): T | undefined {
		return this.#chunks[0]?.[0];
	}

	/** The items, valid until the next change. */
	get chunks(): Chunks<T> {
		return this.#chunks;
	}

	/** The current items; the result never changes. */
	share(): Chunks<T> {
		this.#generation++;
		return this.#chunks;
	}

	/** Inserts an item, which must not be present, at its position. */
	add(item: T): void {
		this.#size++;
		const last = this.#chunks.length - 1;
		if (last < 0) {
			this.#insertChunk(0, [item]);
			return;
		}
		// The outer array has a chunk at `at`, and no chunk is empty.
		const at = Math.min(lowerChunk(this.#chunks, item, this.#before), last);
		const chunk = this.#ownChunk(at);
		const position = lowerBound(chunk, item, this.#before);
		if (chunk.length < chunkSize) {
			insertAt(chunk, position, item);
		} else if (at === last && position === chunk.length) {
			this.#insertChunk(at + 1, [item]);
		} else {
			const upper = chunk.splice(chunkSize / 2);
			this.#insertChunk(at + 1, upper);
			if (position <= chunk.length) {
				insertAt(chunk, position, item);
			} else {
				insertAt(upper, position - chunk.length, item);
			}
		}
	}

	/** Replaces an item, which must be present, by one that is equal to it in the order. */
	replace(item: T, by: T): void {
		const chunk = this.#ownChunk(lowerChunk(this.#chunks, item, this.#before));
		chunk[chunk.indexOf(item)] = by;
	}

	/** Removes an item, which must be present. */
	remove(item: T): void {
		const at = lowerChunk(this.#chunks, item, this.#before);
		const chunk = this.#ownChunk(at);
		chunk.splice(chunk.indexOf(item), 1);
		this.#size--;
		if (chunk.length === 0) {
			this.#removeChunk(at);
		} else if (chunk.length < chunkSize / 8) {
			this.#mergeInto(at);
		}
	}

	/** Appends a small chunk to the one before it, if there is room. */
	#mergeInto(at: number): void {
		const before = this.#chunks[at - 1];
		const chunk = this.#chunks[at];
		if (before && chunk && before.length + chunk.length <= fill) {
			this.#ownChunk(at - 1).push(...chunk);
			this.#removeChunk(at);
		}
	}

	#insertChunk(at: number, chunk: T[]): void {
		this.#ownOuter();
		insertAt(this.#chunks, at, chunk);
		insertAt(this.#owned, at, this.#generation);
	}

	#removeChunk(at: number): void {
		this.#ownOuter();
		this.#chunks.splice(at, 1);
		this.#owned.splice(at, 1);
	}

	#ownOuter(): void {
		if (this.#outerOwned !== this.#generation) {
			this.#chunks = this.#chunks.slice();
			this.#outerOwned = this.#generation;
		}
	}

	#ownChunk(at: number): T[] {
		// Callers pass the index of a chunk.
		const chunk = this.#chunks[at]!;
		if (this.#owned[at] === this.#generation) {
			return chunk;
		}
		this.#ownOuter();
		const own = chunk.slice();
		this.#chunks[at] = own;
		this.#owned[at] = this.#generation;
		return own;
	}
}

/** The maximum length of a chunk. */
const chunkSize = 256;

/** The length of the chunks of a new list, which leaves room for inserts before they split. */
const fill = 192;

/** The first chunk whose last item is not before the given one, or the number of chunks. */
function lowerChunk<T>(chunks: Chunks<T>, item: T, before: (a: T, b: T) => boolean): number {
	let low = 0;
	let high = chunks.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		// `middle` is less than the length, and no chunk is empty.
		const chunk = chunks[middle]!;
		if (before(chunk[chunk.length - 1]!, item)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/** The index of the first item that is not before the given one, or the length. */
function lowerBound<T>(items: readonly T[], item: T, before: (a: T, b: T) => boolean): number {
	let low = 0;
	let high = items.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		// `middle` is less than the length.
		if (before(items[middle]!, item)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

function insertAt<T>(items: T[], position: number, item: T): void {
	if (position === items.length) {
		items.push(item);
	} else {
		items.splice(position, 0, item);
	}
}
