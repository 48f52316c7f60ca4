import {
	type BackoffPolicy,
	backoffDelayMs,
	type Clock,
	type Random,
	type Timer,
} from "@plinth/runtime";
import { DelayHeap } from "./delay-heap.ts";
import { EntryList } from "./entry-list.ts";
import { messageOf } from "./error-message.ts";
import { type EntryState, type KeyFailure, type Priority, QueueEntry } from "./queue-entry.ts";

/** The number of keys in a queue, by state. */
export interface QueueState {
	/** Ready to be taken, of live priority. */
	readonly live: number;
	/** Ready to be taken, of background priority. */
	readonly background: number;
	/** Waiting for their due time. */
	readonly delayed: number;
	/** Taken and not done. */
	readonly active: number;
	/** Held until they are released. */
	readonly held: number;
	/** In any of these states, and failed when they were processed last. */
	readonly failing: number;
	/** The ready key that has waited longest, and for how many milliseconds. */
	readonly oldest: { readonly key: string; readonly waitingMs: number } | undefined;
}

/** The state of one key in a queue. */
export interface KeyState {
	readonly key: string;
	readonly state: EntryState;
	/** If ready or held: since how many milliseconds. */
	readonly waitingMs: number | undefined;
	/** If delayed: in how many milliseconds it is due. */
	readonly dueInMs: number | undefined;
	/** Absent unless it failed when it was processed last. */
	readonly failure: KeyFailure | undefined;
}

/** The options of a queue. */
export interface MergingQueueOptions<Item> {
	readonly clock: Clock;
	/** Delays of items that fail. */
	readonly backoff: BackoffPolicy;
	/** For jitter, so that controllers that conflict with each other do not fail together again. */
	readonly random?: Random;
	/** Merges two items of the same key. By default, the later one replaces the earlier one. */
	readonly merge?: (earlier: Item, later: Item) => Item;
	/** Called whenever a key may be ready; it must not call `take` itself. */
	readonly onReady: () => void;
}

/** How many failing keys have the message of their error. */
const maxMessages = 1_000;

/** If both priorities are ready, one background entry is taken per this many live ones. */
const livePerBackground = 15;

/**
 * A queue of keys with one item each. Items that are added under a key that is queued already are merged
 * (`merge`). A key is in the queue at most once, in one of four states:
 *
 *               add              take             done, nothing added meanwhile
 *   (absent) ─────────▶ ready ─────────▶ active ─────────────────────────────▶ (absent)
 *       │                ▲ ▲              │ │ │
 *       │ add, later     │ │   release    │ │ │ done and something added meanwhile,
 *       ▼                │ └──── held ◀───┘ │ │ retried at its time, or failed
 *    delayed ────────────┘            hold  │ │
 *       ▲          due                      │ ▼
 *       └───────────────────────────────────┴─▶ ready or delayed
 *
 * `gather` adds like `add`, but a key that is absent or delayed becomes held instead of ready.
 *
 * Invariants:
 * - A key that is active or held is never taken: items added meanwhile are kept in `again` (active) or
 *   merged (held).
 * - The item taken is the merge of all items added since the key was last taken, and of the item that
 *   failed then, if it did.
 * - Of an immediate and a delayed addition, the earlier due time wins; an event ends a backoff early, but
 *   the count of failures is reset only by a success.
 * - Ready keys are taken in the order in which they became ready, live ones first, but one background key
 *   per 15 live ones; so a flood of one key delays another by one turn at most, and no key starves. While
 *   background keys are paused, none of them is taken; a live item makes a key live as always.
 * - The heap contains exactly the delayed entries, and one timer is set, for its head or earlier.
 * - It has at most one entry per distinct key.
 * - The failing entries are those in the queue whose last work failed, in the order in which each began to fail.
 */
export class MergingQueue<Item> {
	readonly #clock: Clock;
	readonly #backoff: BackoffPolicy;
	readonly #random: Random | undefined;
	readonly #merge: (earlier: Item, later: Item) => Item;
	readonly #onReady: () => void;
	readonly #entries = new Map<string, QueueEntry<Item>>();
	readonly #live = new EntryList<Item>();
	readonly #background = new EntryList<Item>();
	readonly #delayed = new DelayHeap<Item>();
	readonly #failing = new Set<QueueEntry<Item>>();
	#active = 0;
	#held = 0;
	#liveTakenInARow = 0;
	/** How many pauses of background keys have not ended. */
	#backgroundPauses = 0;
	#order = 0;
	#timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
	#closed = false;

	constructor(options: MergingQueueOptions<Item>) {
		this.#clock = options.clock;
		this.#backoff = options.backoff;
		this.#random = options.random;
		this.#merge = options.merge ?? ((_, later) => later);
		this.#onReady = options.onReady;
	}

	/** The number of keys in any state. */
	get size(): number {
		return this.#entries.size;
	}

	/** Whether no key is in any state. */
	get idle(): boolean {
		return this.#entries.size === 0;
	}

	/** The number of keys that are ready to be taken. */
	get ready(): number {
		return this.#live.length + this.#background.length;
	}

	/** Adds an item that can be taken after `delayMs` milliseconds, by default immediately. */
	add(key: string, item: Item, priority: Priority, delayMs = 0): void {
		if (this.#closed) {
			return;
		}
		const entry = this.#entries.get(key);
		if (entry === undefined) {
			const added = new QueueEntry(key, item, priority);
			this.#entries.set(key, added);
			this.#queue(added, delayMs);
			return;
		}
		switch (entry.state) {
			case "active":
				this.#addAgain(entry, item, priority, this.#dueMs(delayMs));
				return;
			case "held":
				entry.item = this.#merge(entry.item, item);
				if (priority === "live") {
					entry.priority = "live";
				}
				return;
			case "ready":
				entry.item = this.#merge(entry.item, item);
				if (priority === "live" && entry.priority === "background" && delayMs <= 0) {
					this.#background.remove(entry);
					entry.priority = "live";
					this.#live.push(entry);
					this.#onReady();
				}
				return;
			case "delayed":
				entry.item = this.#merge(entry.item, item);
				if (priority === "live") {
					entry.priority = "live";
				}
				if (delayMs <= 0 || this.#dueMs(delayMs) < entry.dueMs) {
					this.#delayed.remove(entry);
					this.#queue(entry, delayMs);
				}
				return;
		}
	}

	/**
	 * Adds an item, but holds its key if it is not ready, active or held already. Returns whether it did: then the key
	 * must be released, and until then all that is added to it is merged.
	 */
	gather(key: string, item: Item, priority: Priority): boolean {
		if (this.#closed) {
			return false;
		}
		const entry = this.#entries.get(key);
		if (entry === undefined) {
			const added = new QueueEntry(key, item, priority);
			this.#entries.set(key, added);
			this.#gathered(added);
			return true;
		}
		if (entry.state !== "delayed") {
			this.add(key, item, priority);
			return false;
		}
		this.#delayed.remove(entry);
		entry.item = this.#merge(entry.item, item);
		if (priority === "live") {
			entry.priority = "live";
		}
		this.#gathered(entry);
		return true;
	}

	/** Takes no key of background priority until `resumeBackground` was called as often. */
	pauseBackground(): void {
		this.#backgroundPauses += 1;
	}

	/** Ends one `pauseBackground`. */
	resumeBackground(): void {
		this.#backgroundPauses -= 1;
		if (this.#backgroundPauses === 0 && this.#background.length > 0) {
			this.#onReady();
		}
	}

	/** Takes the next ready key, which is active from then on. */
	take(): QueueEntry<Item> | undefined {
		const fromBackground =
			this.#background.length > 0 &&
			this.#backgroundPauses === 0 &&
			(this.#live.length === 0 || this.#liveTakenInARow >= livePerBackground);
		this.#liveTakenInARow = fromBackground ? 0 : this.#liveTakenInARow + 1;
		const entry = fromBackground ? this.#background.shift() : this.#live.shift();
		if (entry !== undefined) {
			entry.state = "active";
			this.#active += 1;
		}
		return entry;
	}

	/** The active entry's work is done. Its failures are forgotten. */
	done(entry: QueueEntry<Item>): void {
		this.#active -= 1;
		if (entry.failures > 0) {
			entry.failures = 0;
			entry.failure = undefined;
			this.#failing.delete(entry);
		}
		const { again } = entry;
		if (again === undefined || this.#closed) {
			this.#entries.delete(entry.key);
			return;
		}
		entry.again = undefined;
		entry.item = again.item;
		entry.priority = again.priority;
		this.#queueAt(entry, again.dueMs);
	}

	/** The active entry's work is done, and is due again in `delayMs` milliseconds. */
	doneUntil(entry: QueueEntry<Item>, delayMs: number): void {
		const dueMs = this.#dueMs(delayMs);
		if (entry.again === undefined) {
			entry.again = { item: entry.item, priority: "live", dueMs };
		} else {
			entry.again.dueMs = Math.min(entry.again.dueMs, dueMs);
		}
		this.done(entry);
	}

	/**
	 * The active entry's work failed: it is due again after its backoff, or immediately if an item was
	 * added meanwhile. Returns the delay in milliseconds.
	 */
	fail(entry: QueueEntry<Item>, error: unknown): number {
		this.#active -= 1;
		entry.failures += 1;
		if (this.#closed) {
			this.#remove(entry);
			return 0;
		}
		this.#note(entry, error);
		const { again } = entry;
		let dueMs = this.#dueMs(backoffDelayMs(this.#backoff, entry.failures, this.#random));
		if (again !== undefined) {
			entry.again = undefined;
			entry.item = this.#merge(entry.item, again.item);
			if (again.priority === "live") {
				entry.priority = "live";
			}
			dueMs = Math.min(dueMs, again.dueMs);
		}
		this.#queueAt(entry, dueMs);
		return Math.max(0, dueMs - this.#clock.monotonic());
	}

	#note(entry: QueueEntry<Item>, error: unknown): void {
		const { failures, failure: before } = entry;
		const atMs = this.#clock.now();
		this.#failing.add(entry);
		const hasMessage = this.#failing.size <= maxMessages || (before && before.message !== "");
		const message = hasMessage ? messageOf(error) : "";
		entry.failure = { message, failures, sinceMs: before?.sinceMs ?? atMs, atMs };
	}

	#remove(entry: QueueEntry<Item>): void {
		this.#entries.delete(entry.key);
		this.#failing.delete(entry);
	}

	/** Holds the active entry until its key is released. */
	hold(entry: QueueEntry<Item>): void {
		entry.state = "held";
		this.#active -= 1;
		this.#held += 1;
	}

	/** Makes a held key ready again. Has no effect on other keys. */
	release(key: string): void {
		const entry = this.#entries.get(key);
		if (entry?.state === "held") {
			this.#held -= 1;
			this.#ready(entry, entry.readySinceMs);
		}
	}

	/**
	 * Makes a key active that is not in the queue yet, for work that is running elsewhere; call `done` when
	 * that work has ended.
	 */
	lock(key: string, item: Item): QueueEntry<Item> {
		const entry = new QueueEntry(key, item, "background");
		if (this.#entries.has(key)) {
			throw new Error(`queue key ${key} can't be locked: it is queued already`);
		}
		entry.state = "active";
		this.#active += 1;
		this.#entries.set(key, entry);
		return entry;
	}

	/** Drops the keys that match, and what was added to active ones. */
	drop(matches: (key: string) => boolean): void {
		for (const [key, entry] of this.#entries) {
			if (!matches(key)) {
				continue;
			}
			entry.again = undefined;
			if (entry.state === "active") {
				continue;
			}
			this.#remove(entry);
			switch (entry.state) {
				case "ready":
					(entry.priority === "live" ? this.#live : this.#background).remove(entry);
					break;
				case "delayed":
					this.#delayed.remove(entry);
					break;
				case "held":
					this.#held -= 1;
					break;
			}
		}
	}

	/** Drops all keys that are not active, and all later additions. */
	close(): void {
		this.#closed = true;
		this.#timer?.timer.cancel();
		this.#timer = undefined;
		while (this.#live.shift() !== undefined) {}
		while (this.#background.shift() !== undefined) {}
		this.#delayed.clear();
		this.#held = 0;
		for (const entry of this.#entries.values()) {
			entry.again = undefined;
			if (entry.state !== "active") {
				this.#remove(entry);
			}
		}
	}

	state(): QueueState {
		return {
			live: this.#live.length,
			background: this.#background.length,
			delayed: this.#delayed.length,
			active: this.#active,
			held: this.#held,
			failing: this.#failing.size,
			oldest: this.#oldest(),
		};
	}

	/** Up to `limit` of the keys that failed when they were processed last; first those that have failed for longest. */
	failing(limit: number): readonly KeyState[] {
		const states: KeyState[] = [];
		for (const entry of this.#failing) {
			if (states.length >= limit) {
				break;
			}
			states.push(this.#stateOf(entry));
		}
		return states;
	}

	/** The state of a key; `undefined` if it is not in the queue. */
	stateOf(key: string): KeyState | undefined {
		const entry = this.#entries.get(key);
		return entry && this.#stateOf(entry);
	}

	#stateOf(entry: QueueEntry<Item>): KeyState {
		const { key, state, failure } = entry;
		const nowMs = this.#clock.monotonic();
		return {
			...{ key, state, failure },
			waitingMs: state === "ready" || state === "held" ? nowMs - entry.readySinceMs : undefined,
			dueInMs: state === "delayed" ? Math.max(0, entry.dueMs - nowMs) : undefined,
		};
	}

	#oldest(): QueueState["oldest"] {
		const [live, background] = [this.#live.first, this.#background.first];
		const oldest =
			live === undefined || (background && background.readySinceMs < live.readySinceMs)
				? background
				: live;
		return (
			oldest && {
				key: oldest.key,
				waitingMs: this.#clock.monotonic() - oldest.readySinceMs,
			}
		);
	}

	#dueMs(delayMs: number): number {
		return delayMs <= 0 ? Number.NEGATIVE_INFINITY : this.#clock.monotonic() + delayMs;
	}

	#addAgain(entry: QueueEntry<Item>, item: Item, priority: Priority, dueMs: number): void {
		const { again } = entry;
		if (again === undefined) {
			entry.again = { item, priority, dueMs };
			return;
		}
		again.item = this.#merge(again.item, item);
		again.dueMs = Math.min(again.dueMs, dueMs);
		if (priority === "live") {
			again.priority = "live";
		}
	}

	#gathered(entry: QueueEntry<Item>): void {
		entry.state = "held";
		entry.readySinceMs = this.#clock.monotonic();
		this.#held += 1;
	}

	#queue(entry: QueueEntry<Item>, delayMs: number): void {
		this.#queueAt(entry, this.#dueMs(delayMs));
	}

	#queueAt(entry: QueueEntry<Item>, dueMs: number): void {
		const nowMs = this.#clock.monotonic();
		if (dueMs <= nowMs) {
			this.#ready(entry, nowMs);
			return;
		}
		entry.state = "delayed";
		entry.dueMs = dueMs;
		entry.order = this.#order++;
		this.#delayed.push(entry);
		this.#arm();
	}

	#ready(entry: QueueEntry<Item>, sinceMs: number): void {
		entry.state = "ready";
		entry.readySinceMs = sinceMs;
		(entry.priority === "live" ? this.#live : this.#background).push(entry);
		this.#onReady();
	}

	/** Sets the timer, unless one is set that fires no later than the head is due. */
	#arm(): void {
		const head = this.#delayed.first;
		if (head === undefined || (this.#timer !== undefined && this.#timer.dueMs <= head.dueMs)) {
			return;
		}
		this.#timer?.timer.cancel();
		const delayMs = head.dueMs - this.#clock.monotonic();
		this.#timer = {
			dueMs: head.dueMs,
			timer: this.#clock.setTimer(delayMs, () => {
				this.#timer = undefined;
				this.#readyDue();
				this.#arm();
			}),
		};
	}

	#readyDue(): void {
		const nowMs = this.#clock.monotonic();
		for (
			let head = this.#delayed.first;
			head !== undefined && head.dueMs <= nowMs;
			head = this.#delayed.first
		) {
			this.#delayed.remove(head);
			this.#ready(head, head.dueMs);
		}
	}
}
