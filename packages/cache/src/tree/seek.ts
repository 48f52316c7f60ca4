import type { Chunks } from "./sorted-list.ts";

/** A reader's current position in a sorted list. */
export interface Position {
	chunk: number;
	/** The index in the chunk. */
	item: number;
}

/** The item at the position; `undefined` at the end. Advances the position. */
export function take<T>(chunks: Chunks<T>, position: Position): T | undefined {
	const chunk = chunks[position.chunk];
	if (chunk === undefined) {
		return undefined;
	}
	const item = chunk[position.item++];
	if (position.item === chunk.length) {
		position.chunk++;
		position.item = 0;
	}
	return item;
}

/** The position of the first item whose name is not less than the given one. */
export function seek<T>(chunks: Chunks<T>, name: string, nameOf: (item: T) => string): Position {
	const chunk = firstWhere(chunks, (candidate) => {
		const last = candidate[candidate.length - 1];
		return last !== undefined && nameOf(last) >= name;
	});
	const item = firstWhere(chunks[chunk] ?? [], (candidate) => nameOf(candidate) >= name);
	return { chunk, item };
}

/** Binary search: the index of the first item for which the predicate holds, or the length. */
function firstWhere<T>(items: readonly T[], holds: (item: T) => boolean): number {
	let low = 0;
	let high = items.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		// `middle` is less than the length.
		if (holds(items[middle]!)) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}
