import { type Chunks, SortedList } from "./sorted-list.ts";

interface Segmented {
	readonly segment: string;
}

/** Several nodes with the same parent: found by hash, and sorted on demand. */
export class ChildMap<Child extends Segmented> {
	readonly #bySegment: Map<string, Child>;
	/** Created when the nodes are first read in order, and kept as long as there are any. */
	#ordered: SortedList<Child> | undefined;

	constructor(children: readonly Child[]) {
		this.#bySegment = new Map(children.map((child) => [child.segment, child]));
	}

	get size(): number {
		return this.#bySegment.size;
	}

	get(segment: string): Child | undefined {
		return this.#bySegment.get(segment);
	}

	/** Adds a node whose segment must not be present. */
	add(child: Child): void {
		this.#bySegment.set(child.segment, child);
		this.#ordered?.add(child);
	}

	/** Removes a node, which must be present. */
	remove(child: Child): void {
		this.#ordered?.remove(child);
		this.#bySegment.delete(child.segment);
	}

	/** In no particular order. */
	values(): Iterable<Child> {
		return this.#bySegment.values();
	}

	inOrder(): SortedList<Child> {
		this.#ordered ??= new SortedList(
			segmentBefore,
			[...this.#bySegment.values()].sort((a, b) => (a.segment < b.segment ? -1 : 1)),
		);
		return this.#ordered;
	}

	/** The nodes in order, if they have been read in order before. */
	get ordered(): Chunks<Child> | undefined {
		return this.#ordered?.chunks;
	}
}

/** Whether a node's segment is below another's. */
export function segmentBefore(a: Segmented, b: Segmented): boolean {
	return a.segment < b.segment;
}
