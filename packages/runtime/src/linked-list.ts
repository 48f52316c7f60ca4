/** An element of a list. */
export class ListEntry<T> {
	readonly value: T;
	/** The list; `undefined` once the entry was removed. */
	list: LinkedList<T> | undefined;
	previous: ListEntry<T> | undefined;
	next: ListEntry<T> | undefined;

	/** Only lists create entries. */
	constructor(list: LinkedList<T>, value: T) {
		this.list = list;
		this.value = value;
	}

	/** Removes the element. Returns whether it was still in its list. */
	remove(): boolean {
		return this.list?.unlink(this) ?? false;
	}
}

/**
 * A doubly linked list: elements are appended, and removed from anywhere, at constant cost. For whatever comes and goes
 * with every call, where a `Set` or a `Map` is expensive in V8 for a reason that profiles do not show: they replace their
 * hash tables as elements come and go, and every replaced table refers to the one that replaced it. As soon as one of
 * these tables is in the old generation, minor collections keep all later tables alive, with the elements that were in
 * them, until the next major collection.
 *
 * Invariant: a removed entry refers to no other entry, so that the same can't happen here.
 */
export class LinkedList<T> implements Iterable<T> {
	#first: ListEntry<T> | undefined;
	#last: ListEntry<T> | undefined;
	#size = 0;

	/** The number of elements. */
	get size(): number {
		return this.#size;
	}

	/** The element that was appended first. */
	get first(): T | undefined {
		return this.#first?.value;
	}

	/** Adds an element at the end. The returned entry removes it. */
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

	/** Removes and returns the first element. */
	shift(): T | undefined {
		const first = this.#first;
		first?.remove();
		return first?.value;
	}

	/** Called by `ListEntry.remove`. Returns whether the entry was in this list. */
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
	 * The elements from the first to the last, as they are when the iteration begins; those that are removed during the
	 * iteration are skipped.
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
