import type { Clock, Timer } from "./clock.ts";
import { LinkedList, type ListEntry } from "./collections/linked-list.ts";

/** A deadline that was set. */
export interface Deadline {
	/** The deadline does not matter any more. */
	cancel(): void;
}

/** The shortest slot, in milliseconds: the most by which a deadline is late. */
const shortestSlotMs = 4;

/** A slot is at most this fraction of the time that remains. */
const precision = 1 / 8;

/** The deadlines of one slot. */
type Slot = LinkedList<Entry>;

class Entry implements Deadline {
	readonly atMs: number;
	readonly expire: () => void;
	/** Its place in a slot. */
	place: ListEntry<Entry> | undefined;

	constructor(atMs: number, expire: () => void) {
		this.atMs = atMs;
		this.expire = expire;
	}

	cancel(): void {
		this.place?.remove();
		this.place = undefined;
	}
}

/**
 * The deadlines of many calls, with one timer of the clock. Setting and canceling a deadline costs a look-up in a map:
 *
 * ```
 * now                            slots become wider with the time that remains
 * ├─┼─┼─┼─┼───┼───┼───┼───┼───────┼───────┼───────┼───────┼───────────────┼────▶
 * ```
 *
 * When a slot begins, the deadlines in it that are not reached move to shorter slots, so that each expires within 4 ms.
 * Invariant: while there are slots, the timer is set for the beginning of the first one, or for an earlier time.
 */
export class Deadlines {
	readonly #clock: Clock;
	/** By their beginning, on the monotonic scale. */
	readonly #slots = new Map<number, Slot>();
	#timer: Timer | undefined;
	#timerAtMs = Number.POSITIVE_INFINITY;

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/**
	 * Calls `expire` when the monotonic clock has reached `atMs`, unless the deadline is canceled. `Infinity` and `NaN`
	 * are never reached.
	 */
	set(atMs: number, expire: () => void): Deadline {
		const entry = new Entry(atMs, expire);
		if (atMs < Number.POSITIVE_INFINITY) {
			this.#place(entry, this.#clock.monotonic());
		}
		return entry;
	}

	#place(entry: Entry, nowMs: number): void {
		// The clock may have passed it since the caller looked.
		const remainingMs = Math.max(0, entry.atMs - nowMs);
		const widthMs = Math.max(shortestSlotMs, 2 ** Math.floor(Math.log2(remainingMs * precision)));
		const slots = entry.atMs / widthMs;
		const atMs = (widthMs > shortestSlotMs ? Math.floor(slots) : Math.ceil(slots)) * widthMs;
		let slot = this.#slots.get(atMs);
		if (slot === undefined) {
			slot = new LinkedList();
			this.#slots.set(atMs, slot);
		}
		entry.place = slot.append(entry);
		if (atMs < this.#timerAtMs) {
			this.#arm(atMs, nowMs);
		}
	}

	#arm(atMs: number, nowMs: number): void {
		this.#timer?.cancel();
		this.#timerAtMs = atMs;
		this.#timer = this.#clock.setTimer(atMs - nowMs, this.#onTimer);
	}

	readonly #onTimer = (): void => {
		const nowMs = this.#clock.monotonic();
		this.#timer = undefined;
		this.#timerAtMs = Number.POSITIVE_INFINITY;
		let nextMs = Number.POSITIVE_INFINITY;
		const begun: Slot[] = [];
		for (const [atMs, slot] of this.#slots) {
			if (slot.size === 0 || atMs <= nowMs) {
				this.#slots.delete(atMs);
				begun.push(slot);
			} else {
				nextMs = Math.min(nextMs, atMs);
			}
		}
		if (nextMs < Number.POSITIVE_INFINITY) {
			this.#arm(nextMs, nowMs);
		}
		for (const slot of begun) {
			for (const entry of slot) {
				entry.cancel();
				if (entry.atMs <= nowMs) {
					entry.expire();
				} else {
					this.#place(entry, nowMs);
				}
			}
		}
	};
}
