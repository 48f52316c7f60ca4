import { type Chunks, SortedList } from "./sorted-list.ts";

/** What has a place among others of its parent, by a name that none of the others has. */
export interface Named {
	readonly segment: string;
}

/** Whether an item's segment is below another's. */
export function segmentBefore(a: Named, b: Named): boolean {
	return a.segment < b.segment;
}

/**
 * Named items: found by hash, and in order for those who ask.
 *
 * Keeping a million names in order costs more than keeping them findable, and most are only ever
 * looked up. So they are put in order when someone first wants them so, and kept in it from then on.
 */
export class SegmentMap<T extends Named> {
	readonly #byName = new Map<string, T>();
	#ordered: SortedList<T> | undefined;

	get size(): number {
		return this.#byName.size;
	}

	get(segment: string): T | undefined {
		return this.#byName.get(segment);
	}

	/** Adds an item whose name is free. */
	add(item: T): void {
		this.#byName.set(item.segment, item);
		this.#ordered?.add(item);
	}

	/** Removes an item that is there. */
	remove(item: T): void {
		this.#ordered?.remove(item);
		this.#byName.delete(item.segment);
	}

	/** All items, in no order. */
	values(): Iterable<T> {
		return this.#byName.values();
	}

	/** All items, by name. */
	inOrder(): SortedList<T> {
		this.#ordered ??= new SortedList<T>(
			segmentBefore,
			[...this.#byName.values()].sort((a, b) => (a.segment < b.segment ? -1 : 1)),
		);
		return this.#ordered;
	}

	/** The items by name, where someone has wanted them so, for the check of invariants. */
	get ordered(): Chunks<T> | undefined {
		return this.#ordered?.chunks;
	}
}
