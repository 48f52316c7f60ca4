import { count } from "../model/format.ts";

/** Reconciles that took about the same time. */
export interface DurationBucket {
	/** Where it begins, as in `0`, `64 ms` or `4 s`. */
	readonly from: string;
	readonly count: number;
	/** As in `12 from 64 ms to 128 ms`. */
	readonly text: string;
}

/**
 * The buckets of a histogram, from the first to the last one that is not empty, and one more on each side.
 *
 * @param counts - as in `Reconciles.durations` of the API: the first less than 1 ms, the last any time, each other one less
 * than twice the one before.
 */
export function durationBuckets(counts: readonly bigint[]): readonly DurationBucket[] {
	const first = counts.findIndex((each) => each > 0n);
	if (first === -1) {
		return [];
	}
	const last = counts.findLastIndex((each) => each > 0n);
	return counts
		.map((each, at): DurationBucket => {
			const from = at === 0 ? "0" : durationText(2 ** (at - 1));
			const range =
				at === 0
					? "below 1 ms"
					: at === counts.length - 1
						? `of ${from} or longer`
						: `from ${from} to ${durationText(2 ** at)}`;
			return { from, count: Number(each), text: `${count(each)} ${range}` };
		})
		.slice(Math.max(0, first - 1), last + 2);
}

/** A power of two of milliseconds, in seconds from about one second on. */
function durationText(ms: number): string {
	return ms < 1_000 ? `${ms} ms` : `${Math.round(ms / 1_000)} s`;
}
