/** Requests caused by a change are `live`; those caused by priming and resyncs are `background`. */
export type Priority = "live" | "background";

/** The state of a queue entry, as explained in merging-queue.ts. */
export type EntryState = "ready" | "delayed" | "active" | "held";

/** The consecutive failures of a key. Times are in milliseconds since the epoch. */
export interface KeyFailure {
	/** The error of the last one; empty if too many other keys fail. */
	readonly message: string;
	/** How many there are. */
	readonly failures: number;
	/** When the first one occurred. */
	readonly sinceMs: number;
	/** When the last one occurred. */
	readonly atMs: number;
}

/** The item that was added under a key while the key was active. */
export interface Again<Item> {
	item: Item;
	priority: Priority;
	/** On the monotonic clock; in the past if it is due immediately. */
	dueMs: number;
}

/**
 * A key in a queue, with its item. Entries themselves are the links of the queue's lists and the slots of
 * its heap, so that a million entries are a million objects and no more.
 */
export class QueueEntry<Item> {
	readonly key: string;
	item: Item;
	priority: Priority;
	state: EntryState = "ready";
	/** Consecutive failures. */
	failures = 0;
	/** Present if there are any. */
	failure: KeyFailure | undefined = undefined;
	/** Since when it has been ready or held, on the monotonic clock. */
	readySinceMs = 0;
	/** If delayed: when it is due, on the monotonic clock. */
	dueMs = 0;
	/** If delayed: the order among entries that are due at the same time. */
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
