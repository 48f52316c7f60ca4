import type { ID } from "@plinth/proto";
import type { Clock, Timer } from "@plinth/runtime";

/** What a resync is made with. */
export interface ResyncOptions {
	readonly clock: Clock;
	/** How often each resource comes up, in milliseconds. */
	readonly periodMs: number;
	/** All managed resources that are cached. */
	readonly all: () => ID[];
	/** A resource has come up; it may have been deleted since. */
	readonly onDue: (id: ID) => void;
}

/** Steps are at least this long, however many resources there are. */
const minStepMs = 1_000;
/** Steps are at most this long, so that one resource comes up in time as well. */
const maxStepMs = 60_000;

/**
 * Brings up all managed resources, spread evenly over a period, and then again. A round goes over
 * those that are cached at its start; what is created later, and so reconciled then, joins the
 * next round.
 */
export class Resync {
	readonly #options: ResyncOptions;
	#round: readonly ID[] = [];
	#startedMs = 0;
	/** How many of the round have come up. */
	#done = 0;
	#timer: Timer | undefined;

	constructor(options: ResyncOptions) {
		this.#options = options;
	}

	start(): void {
		this.#round = this.#options.all();
		this.#done = 0;
		this.#startedMs = this.#options.clock.monotonic();
		this.#arm();
	}

	stop(): void {
		this.#timer?.cancel();
		this.#timer = undefined;
		this.#round = [];
	}

	#arm(): void {
		const { clock, periodMs } = this.#options;
		const restMs = this.#startedMs + periodMs - clock.monotonic();
		const evenMs = periodMs / Math.max(1, this.#round.length);
		const stepMs = Math.min(Math.max(evenMs, minStepMs), maxStepMs, restMs);
		this.#timer = clock.setTimer(stepMs, () => this.#step());
	}

	#step(): void {
		const { clock, periodMs, onDue } = this.#options;
		const part = Math.min(1, (clock.monotonic() - this.#startedMs) / periodMs);
		const target = Math.floor(this.#round.length * part);
		for (; this.#done < target; this.#done++) {
			const id = this.#round[this.#done];
			if (id !== undefined) {
				onDue(id);
			}
		}
		if (part >= 1) {
			this.start();
		} else {
			this.#arm();
		}
	}
}
