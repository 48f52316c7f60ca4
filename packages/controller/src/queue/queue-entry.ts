/** Requests that follow a change are `live`; those of priming and of resyncs are `background`. */
export type Priority = "live" | "background";

/** Where an entry of a queue is; the states are explained in merging-queue.ts. */
export type EntryState = "ready" | "delayed" | "active" | "held";

/** What was added under a key while the key was active. */
export interface Again<Item> {
	item: Item;
	priority: Priority;
	/** On the monotonic clock; at or before the present: at once. */
	dueMs: number;
}

/**
 * A key in a queue, with what is to be done for it. Entries are links of the queue's lists and
 * slots of its heap themselves, so that a million of them cost a million objects and no more.
 */
export class QueueEntry<Item> {
	readonly key: string;
	item: Item;
	priority: Priority;
	state: EntryState = "ready";
	/** Failures in a row. */
	failures = 0;
	/** Since when it waits to be taken (ready, held), on the monotonic clock. */
	readySinceMs = 0;
	/** While delayed: until when, on the monotonic clock. */
	dueMs = 0;
	/** While delayed: tells entries apart that come due at the same time; first come, first served. */
	order = 0;
	heapIndex = -1;
	previous: QueueEntry<Item> | undefined = undefined;
	next: QueueEntry<Item> | undefined = undefined;
	again: Again<Item> | undefined = undefined;

	constructor(key: string, item: Item, priority: Priority) {
		this.key = key;
		this.item = item;
		this.priority = priority;
	}
}
