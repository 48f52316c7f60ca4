import { type Runtime, type Scheduler, scheduleAfterInput } from "@plinth/runtime";

/** A watch whose consumer waits, and for which there is an event. */
export interface Delivery {
	/** Whether its consumer no longer waits, so that nothing will be sent. */
	readonly isOver: boolean;
	/** It is its turn: sends the event to the consumer, if that still waits. From now on it may be added again. */
	deliver(): void;
}

/** Options of deliveries. */
export interface WatchDeliveriesOptions {
	/** How many deliveries one iteration of the event loop begins; 32 by default. */
	readonly perIteration?: number;
}

/** How far a server is behind in deliveries. */
export interface DeliveryLag {
	/** The deliveries that wait for a later iteration of the event loop. */
	readonly waiting: number;
	/** The longest that a delivery has waited since the last call, or waits now, in milliseconds. */
	readonly longestMs: number;
	/** The time during which deliveries have waited since the start, in milliseconds. */
	readonly behindMs: number;
}

/**
 * The deliveries to watches, in slices: each iteration of the event loop begins a limited number of them, so that an
 * event for a thousand watches does not keep writes and reads from being served.
 *
 * ```
 *   wake ──▶ room in this iteration? ──yes──▶ scheduled at once
 *                 │ no                              ▲
 *                 └──▶ waiting, oldest first ───────┘ after input has been handled
 * ```
 *
 * Deliveries begin in the order in which their watches were woken. A watch waits here once, however many events there
 * are for it: a server that falls behind delivers several events to each watch in its turn. So at most as many
 * deliveries wait as there are watches.
 *
 * Invariant: while any wait, this iteration has begun as many as it may, and the next one is scheduled. So nothing
 * overtakes those that wait, and they are not forgotten.
 */
export class WatchDeliveries {
	readonly #scheduler: Scheduler;
	readonly #clock: Runtime["clock"];
	readonly #perIteration: number;
	/** Those before `#next` have begun. */
	#waiting: Waiting[] = [];
	#next = 0;
	/** How many have begun in this iteration. */
	#begun = 0;
	#isScheduled = false;
	#longestMs = 0;
	#behindMs = 0;
	#behindSinceMs: number | undefined;

	constructor(
		{ scheduler, clock }: Pick<Runtime, "scheduler" | "clock">,
		{ perIteration = 32 }: WatchDeliveriesOptions = {},
	) {
		this.#scheduler = scheduler;
		this.#clock = clock;
		this.#perIteration = perIteration;
	}

	/** Delivers later, never within the call. */
	add(delivery: Delivery): void {
		if (this.#begun < this.#perIteration) {
			this.#begin(delivery);
		} else {
			const nowMs = this.#clock.monotonic();
			this.#behindSinceMs ??= nowMs;
			this.#waiting.push({ delivery, sinceMs: nowMs });
		}
	}

	/** How far the server is behind. Begins a new period for `longestMs`. */
	takeLag(): DeliveryLag {
		const nowMs = this.#clock.monotonic();
		const oldest = this.#waiting[this.#next];
		const longestMs = Math.max(this.#longestMs, oldest === undefined ? 0 : nowMs - oldest.sinceMs);
		this.#longestMs = 0;
		return {
			waiting: this.#waiting.length - this.#next,
			longestMs,
			behindMs: this.#behindMs + nowMs - (this.#behindSinceMs ?? nowMs),
		};
	}

	#begin(delivery: Delivery): void {
		this.#begun += 1;
		this.#scheduler.schedule(() => delivery.deliver());
		if (!this.#isScheduled) {
			this.#isScheduled = true;
			scheduleAfterInput(this.#scheduler, this.#onIteration);
		}
	}

	readonly #onIteration = (): void => {
		this.#isScheduled = false;
		this.#begun = 0;
		if (this.#behindSinceMs === undefined) {
			return;
		}
		const nowMs = this.#clock.monotonic();
		while (this.#begun < this.#perIteration) {
			const waiting = this.#waiting[this.#next];
			if (waiting === undefined) {
				this.#behindMs += nowMs - this.#behindSinceMs;
				this.#behindSinceMs = undefined;
				this.#waiting = [];
				this.#next = 0;
				return;
			}
			this.#next += 1;
			this.#longestMs = Math.max(this.#longestMs, nowMs - waiting.sinceMs);
			if (waiting.delivery.isOver) {
				// It takes no time of others, but learns that it no longer waits here.
				waiting.delivery.deliver();
			} else {
				this.#begin(waiting.delivery);
			}
		}
		this.#dropBegun();
	};

	/** Frees the slots of those that have begun, once they are most of the array. */
	#dropBegun(): void {
		if (this.#next > this.#waiting.length / 2) {
			this.#waiting = this.#waiting.slice(this.#next);
			this.#next = 0;
		}
	}
}

interface Waiting {
	readonly delivery: Delivery;
	/** On the monotonic clock, in milliseconds. */
	readonly sinceMs: number;
}
