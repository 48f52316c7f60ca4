import { nameBefore, sortByName } from "./entry-order.ts";
import { type Entry, type Node, nameOf } from "./node.ts";
import { type Chunks, SortedList } from "./sorted-list.ts";

/**
 * The entries of one tenancy: found by hash, and in order for those who ask.
 *
 * To keep a million names in order costs more than to keep them findable, and most are only ever
 * looked up. So they are put in order when somebody first wants them so, and kept in it from then on.
 */
export class NameMap {
	/** The node whose bucket it is. */
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

	/** Adds an entry whose name is free. */
	add(entry: Entry): void {
		this.#byName.set(nameOf(entry), entry);
		this.#ordered?.add(entry);
	}

	/** Puts an entry in the place of the one of the same name. */
	replace(entry: Entry, by: Entry): void {
		this.#byName.set(nameOf(by), by);
		this.#ordered?.replace(entry, by);
	}

	/** Removes an entry that is there. */
	remove(entry: Entry): void {
		this.#ordered?.remove(entry);
		this.#byName.delete(nameOf(entry));
	}

	/** In no order. */
	values(): Iterable<Entry> {
		return this.#byName.values();
	}

	inOrder(): SortedList<Entry> {
		this.#ordered ??= new SortedList(nameBefore, sortByName(this.#byName.values()));
		return this.#ordered;
	}

	/** The entries in order, if somebody has wanted them so. */
	get ordered(): Chunks<Entry> | undefined {
		return this.#ordered?.chunks;
	}
}
