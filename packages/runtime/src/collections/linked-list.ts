/** An element of a `LinkedList`, by which it can be removed. */
export class ListEntry<T> {
	readonly value: T;
	/** The list that contains the entry; `undefined` after the entry was removed. Only the list changes this field. */
	list: LinkedList<T> | undefined;
	/** The entry before this one in the list. */
	previous: ListEntry<T> | undefined;
	/** The entry after this one in the list. */
	next: ListEntry<T> | undefined;

	/** Only lists create entries. */
	constructor(list: LinkedList<T>, value: T) {
		this.list = list;
		this.value = value;
	}

	/** Removes the element from its list. Returns false if it had been removed before. */
	remove(): boolean {
		return this.list?.unlink(this) ?? false;
	}
}

/**
 * A doubly linked list: elements are appended, and removed from any position, at constant cost.
 *
 * Use it for objects that are added and removed with every call. For these, a `Set` or a `Map` is expensive in V8, for
 * a reason that profiles do not show. Sets and maps replace their hash tables as elements come and go, and each
 * replaced table refers to the table that replaced it. Once one of these tables is in the old generation, minor garbage
 * collections keep all later tables alive, with the elements that were in them, until the next major collection.
 *
 * Invariant: a removed entry refers to no other entry, so that removed entries do not keep later ones alive.
 */
export class LinkedList<T> implements Iterable<T> {
	#first: ListEntry<T> | undefined;
	#last: ListEntry<T> | undefined;
	#size = 0;

	/** The number of elements. */
	get size(): number {
		return this.#size;
	}

	/** The first element; `undefined` if the list is empty. */
	get first(): T | undefined {
		return this.#first?.value;
	}

	/** Adds an element at the end. Call `remove` of the returned entry to remove it. */
	append(value: T): ListEntry<T> {
		const entry = new ListEntry(this, value);
		const last = this.#last;
		if (last === undefined) {
			this.#first = entry;
		} else {
			last.next = entry;
			entry.previous = last;
		}
		this.#last = entry;
		this.#size += 1;
		return entry;
	}

	/** Removes and returns the first element; returns `undefined` if the list is empty. */
	shift(): T | undefined {
		const first = this.#first;
		first?.remove();
		return first?.value;
	}

	/** Called only by `ListEntry.remove`. Returns false if the entry is not in this list. */
	unlink(entry: ListEntry<T>): boolean {
		if (entry.list !== this) {
			return false;
		}
		const { previous, next } = entry;
		if (previous === undefined) {
			this.#first = next;
		} else {
			previous.next = next;
		}
		if (next === undefined) {
			this.#last = previous;
		} else {
			next.previous = previous;
		}
		entry.list = undefined;
		entry.previous = undefined;
		entry.next = undefined;
		this.#size -= 1;
		return true;
	}

	/**
	 * The elements that are in the list when the iteration begins, from the first to the last. Elements that are removed
	 * before the iteration reaches them are skipped.
	 */
	*[Symbol.iterator](): Iterator<T> {
		const entries: ListEntry<T>[] = [];
		for (let entry = this.#first; entry !== undefined; entry = entry.next) {
			entries.push(entry);
		}
		for (const entry of entries) {
			if (entry.list !== undefined) {
				yield entry.value;
			}
		}
	}
}
