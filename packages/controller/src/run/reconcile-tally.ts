import type { EndlessChain } from "../queue/write-chains.ts";

/** Counts of a controller's reconciles, over all of its runs. */
export interface ReconcileCounts {
	readonly succeeded: number;
	readonly failed: number;
	/** Exceeded the time limit; they are also counted as failed when they end. */
	readonly overdue: number;
	/** Requests for a type other than the managed one. */
	readonly dropped: number;
	/** The total duration of those that have ended, in milliseconds. */
	readonly totalMs: number;
	/** The duration of the longest, in milliseconds. */
	readonly longestMs: number;
	/** How many of them took how long: the first less than 1 ms, each next one less than twice the one before, the last any time. */
	readonly durations: readonly number[];
	/** The last failure of any reconcile, also if that key has succeeded since. */
	readonly lastFailure: ReconcileFailure | undefined;
	/** The last chain of reconciles that trigger each other, which ended with one of this controller. */
	readonly endlessChain: EndlessChain | undefined;
}

/** A reconcile that has failed. */
export interface ReconcileFailure {
	readonly key: string;
	readonly message: string;
	/** In milliseconds since the epoch. */
	readonly atMs: number;
}

/** From 1 ms to 65,536 ms, and what takes longer. */
const durationBuckets = 18;

function bucketOf(tookMs: number): number {
	const doublings = tookMs < 1 ? 0 : Math.floor(Math.log2(tookMs)) + 1;
	return Math.min(doublings, durationBuckets - 1);
}

/** Counts reconciles. */
export class ReconcileTally {
	#lastFailure: ReconcileFailure | undefined;
	#endlessChain: EndlessChain | undefined;
	readonly #durations = new Array<number>(durationBuckets).fill(0);
	#counts = { succeeded: 0, failed: 0, overdue: 0, dropped: 0, totalMs: 0, longestMs: 0 };

	ended(outcome: "succeeded" | "failed", tookMs: number): void {
		this.#counts[outcome] += 1;
		this.#counts.totalMs += tookMs;
		this.#counts.longestMs = Math.max(this.#counts.longestMs, tookMs);
		const bucket = bucketOf(tookMs);
		this.#durations[bucket] = (this.#durations[bucket] ?? 0) + 1;
	}

	overdue(): void {
		this.#counts.overdue += 1;
	}

	failed(failure: ReconcileFailure): void {
		this.#lastFailure = failure;
	}

	triggeredItself(chain: EndlessChain): void {
		this.#endlessChain = chain;
	}

	dropped(): void {
		this.#counts.dropped += 1;
	}

	counts(): ReconcileCounts {
		return {
			...this.#counts,
			durations: [...this.#durations],
			lastFailure: this.#lastFailure,
			endlessChain: this.#endlessChain,
		};
	}
}
