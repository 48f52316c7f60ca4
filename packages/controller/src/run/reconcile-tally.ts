/** What has come of a controller's reconciles, over all of its runs. */
export interface ReconcileCounts {
	readonly succeeded: number;
	readonly failed: number;
	/** Passed the time limit; what comes of them in the end counts as well. */
	readonly overdue: number;
	/** Requests for another type than the managed one. */
	readonly dropped: number;
	/** How long those that have ended took, all together, in milliseconds. */
	readonly totalMs: number;
	/** How long the longest took, in milliseconds. */
	readonly longestMs: number;
}

/** Counts reconciles. */
export class ReconcileTally {
	#counts = { succeeded: 0, failed: 0, overdue: 0, dropped: 0, totalMs: 0, longestMs: 0 };

	ended(outcome: "succeeded" | "failed", tookMs: number): void {
		this.#counts[outcome] += 1;
		this.#counts.totalMs += tookMs;
		this.#counts.longestMs = Math.max(this.#counts.longestMs, tookMs);
	}

	overdue(): void {
		this.#counts.overdue += 1;
	}

	dropped(): void {
		this.#counts.dropped += 1;
	}

	counts(): ReconcileCounts {
		return { ...this.#counts };
	}
}
