import type { QueueEntry } from "./queue-entry.ts";

/** A FIFO list with removal from any position in constant time. An entry is in at most one list. */
export class EntryList<Item> {
	#first: QueueEntry<Item> | undefined;
	#last: QueueEntry<Item> | undefined;
	#length = 0;

	get first(): QueueEntry<Item> | undefined {
		return this.#first;
	}

	get length(): number {
		return this.#length;
	}

	push(entry: QueueEntry<Item>): void {
		entry.previous = this.#last;
		entry.next = undefined;
		if (this.#last === undefined) {
			this.#first = entry;
		} else {
			this.#last.next = entry;
		}
		this.#last = entry;
		this.#length += 1;
	}

	remove(entry: QueueEntry<Item>): void {
		if (entry.previous === undefined) {
			this.#first = entry.next;
		} else {
			entry.previous.next = entry.next;
		}
		if (entry.next === undefined) {
			this.#last = entry.previous;
		} else {
			entry.next.previous = entry.previous;
		}
		entry.previous = undefined;
		entry.next = undefined;
		this.#length -= 1;
	}

	shift(): QueueEntry<Item> | undefined {
		const first = this.#first;
		if (first !== undefined) {
			this.remove(first);
		}
		return first;
	}
}
