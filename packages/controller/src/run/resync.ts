import type { ID } from "@plinth/proto";
import type { Clock, Timer } from "@plinth/runtime";

/** The options of a resync. */
export interface ResyncOptions {
	readonly clock: Clock;
	/** The interval at which each resource is due, in milliseconds. */
	readonly periodMs: number;
	/** All managed resources that are cached. */
	readonly all: () => ID[];
	/** A resource is due; it may have been deleted since. */
	readonly onDue: (id: ID) => void;
}

/** The minimum length of a step, for any number of resources. */
const minStepMs = 1_000;
/** The maximum length of a step, so that a single resource is due in time, too. */
const maxStepMs = 60_000;

/**
 * Reports all managed resources as due, spread evenly over a period, in repeated rounds. A round covers the
 * resources that are cached at its start; resources created later, which are reconciled then, join the
 * next round.
 */
export class Resync {
	readonly #options: ResyncOptions;
	#round: readonly ID[] = [];
	#startedMs = 0;
	/** How many resources of the round have been due. */
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
