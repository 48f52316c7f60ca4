import type { QueueEntry } from "./queue-entry.ts";

/**
 * Delayed entries, ordered by their due time. A binary heap in an array, with the children of slot i in
 * slots 2i + 1 and 2i + 2; each entry knows its slot, so that any entry can be removed or rescheduled.
 */
export class DelayHeap<Item> {
	readonly #slots: QueueEntry<Item>[] = [];

	get length(): number {
		return this.#slots.length;
	}

	get first(): QueueEntry<Item> | undefined {
		return this.#slots[0];
	}

	push(entry: QueueEntry<Item>): void {
		this.#slots.push(entry);
		this.#rise(entry, this.#slots.length - 1);
	}

	remove(entry: QueueEntry<Item>): void {
		const slot = entry.heapIndex;
		const last = this.#slots.pop();
		entry.heapIndex = -1;
		if (last !== undefined && last !== entry) {
			this.#rise(last, slot);
			this.#sink(last, last.heapIndex);
		}
	}

	clear(): void {
		this.#slots.length = 0;
	}

	#rise(entry: QueueEntry<Item>, from: number): void {
		let slot = from;
		while (slot > 0) {
			const parentSlot = (slot - 1) >> 1;
			const parent = this.#slots[parentSlot];
			if (parent === undefined || !isBefore(entry, parent)) {
				break;
			}
			this.#put(parent, slot);
			slot = parentSlot;
		}
		this.#put(entry, slot);
	}

	#sink(entry: QueueEntry<Item>, from: number): void {
		let slot = from;
		for (;;) {
			let childSlot = 2 * slot + 1;
			let child = this.#slots[childSlot];
			const right = this.#slots[childSlot + 1];
			if (child !== undefined && right !== undefined && isBefore(right, child)) {
				child = right;
				childSlot += 1;
			}
			if (child === undefined || !isBefore(child, entry)) {
				break;
			}
			this.#put(child, slot);
			slot = childSlot;
		}
		this.#put(entry, slot);
	}

	#put(entry: QueueEntry<Item>, slot: number): void {
		this.#slots[slot] = entry;
		entry.heapIndex = slot;
	}
}

function isBefore<Item>(a: QueueEntry<Item>, b: QueueEntry<Item>): boolean {
	return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}
