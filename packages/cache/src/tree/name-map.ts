import { nameBefore, sortByName } from "./entry-order.ts";
import { type Entry, type Node, nameOf } from "./node.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";

/**
 * The entries of one tenancy: found by hash, and sorted on demand.
 *
 * Keeping a million names sorted costs more than hashing them, and most are only looked up. So they are
 * sorted when they are first read in order, and kept sorted from then on.
 */
export class NameMap {
	/** The node that it is the bucket of. */
	readonly home: Node;
	readonly #byName = new Map<string, Entry>();
	#ordered: SortedList<Entry> | undefined;

	constructor(home: Node, first: Entry) {
		this.home = home;
		this.#byName.set(nameOf(first), first);
	}

	get size(): number {
		return this.#byName.size;
	}

	get(name: string): Entry | undefined {
		return this.#byName.get(name);
	}

	/** Adds an entry whose name must not be present. */
	add(entry: Entry): void {
		this.#byName.set(nameOf(entry), entry);
		this.#ordered?.add(entry);
	}

	/** Replaces the entry of the same name. */
	replace(entry: Entry, by: Entry): void {
		this.#byName.set(nameOf(by), by);
		this.#ordered?.replace(entry, by);
	}

	/** Removes an entry, which must be present. */
	remove(entry: Entry): void {
		this.#ordered?.remove(entry);
		this.#byName.delete(nameOf(entry));
	}

	/** In no particular order. */
	values(): Iterable<Entry> {
		return this.#byName.values();
	}

	inOrder(): SortedList<Entry> {
		this.#ordered ??= new SortedList(nameBefore, sortByName(this.#byName.values()));
		return this.#ordered;
	}

	/** The entries in order, if they have been read in order before. */
	get ordered(): Chunks<Entry> | undefined {
		return this.#ordered?.chunks;
	}
}
