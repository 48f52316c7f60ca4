import type { Clock } from "@plinth/runtime";

/** Inclusive upper bounds of the buckets of durations, in milliseconds. */
export const durationBoundsMs = [
	...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000],
] as const;

const buckets = durationBoundsMs.length + 1;

/** How long a period is, in milliseconds, and of how many the counts are the sum: the current one and six before it. */
const [periodMs, periods] = [10_000, 7];

/** What commits took, and how they were grouped. */
export interface CommitCounts {
	/** How many commits took how long: one count for each bound, and at the end that of all that took longer. */
	readonly durations: readonly number[];
	/** How often commits were written. */
	readonly batches: number;
	/** How many commits were in `batches`. */
	readonly batchedCommits: number;
}

/** What happened in one period. */
interface Period {
	/** Its number on the clock. */
	readonly at: number;
	readonly durations: number[];
	batches: number;
	batchedCommits: number;
}

/**
 * Counts the commits of the last minute, in periods, without timers:
 *
 * ```
 *   forgotten │ period 41 │ 42 │ 43 │ 44 │ 45 │ 46 │ 47 (now) │
 *             └──────────── the counts are their sum ─────────┘
 * ```
 *
 * So they are of the last 60 to 70 s. A commit costs one increment.
 */
export class RecentCommits {
	readonly #clock: Clock;
	/** In which something happened, the oldest first. Never more than `periods`. */
	readonly #periods: Period[] = [];

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** A commit has succeeded. @param endMs - now, on the monotonic clock. */
	committed(durationMs: number, endMs: number): void {
		const { durations } = this.#period(endMs);
		let bucket = 0;
		while (bucket < durationBoundsMs.length && durationMs > (durationBoundsMs[bucket] ?? 0)) {
			bucket += 1;
		}
		durations[bucket] = (durations[bucket] ?? 0) + 1;
	}

	/** Commits were written together. */
	written(commits: number): void {
		const period = this.#period(this.#clock.monotonic());
		period.batches += 1;
		period.batchedCommits += commits;
	}

	/** The counts of the last minute. */
	counts(): CommitCounts {
		const newest = Math.floor(this.#clock.monotonic() / periodMs);
		const recent = this.#periods.filter(({ at }) => at > newest - periods);
		const sum = (count: (period: Period) => number) =>
			recent.reduce((total, period) => total + count(period), 0);
		return {
			durations: Array.from({ length: buckets }, (_, bucket) =>
				sum(({ durations }) => durations[bucket] ?? 0),
			),
			batches: sum((period) => period.batches),
			batchedCommits: sum((period) => period.batchedCommits),
		};
	}

	#period(nowMs: number): Period {
		const at = Math.floor(nowMs / periodMs);
		let current = this.#periods.at(-1);
		if (current?.at !== at) {
			current = { at, durations: new Array(buckets).fill(0), batches: 0, batchedCommits: 0 };
			this.#periods.push(current);
			if (this.#periods.length > periods) {
				this.#periods.shift();
			}
		}
		return current;
	}
}

/**
 * Estimates a quantile of durations, in milliseconds; `undefined` if there are none. Within a bucket, durations are taken to be
 * spread evenly; those beyond the last bound count as that.
 *
 * @param counts - as `CommitCounts.durations`.
 * @param share - such as 0.5 for the median.
 */
export function durationQuantile(counts: readonly number[], share: number): number | undefined {
	const total = counts.reduce((sum, count) => sum + count, 0);
	if (total === 0) {
		return undefined;
	}
	const rank = share * total;
	let below = 0;
	for (const [bucket, count] of counts.entries()) {
		const to = durationBoundsMs[bucket];
		if (to === undefined) {
			break;
		}
		if (count > 0 && below + count >= rank) {
			const from = durationBoundsMs[bucket - 1] ?? 0;
			return from + ((to - from) * (rank - below)) / count;
		}
		below += count;
	}
	return durationBoundsMs.at(-1);
}
