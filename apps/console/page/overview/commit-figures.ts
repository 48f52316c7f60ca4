import type { Duration } from "@bufbuild/protobuf/wkt";
import type { StorageOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { count, milliseconds } from "../model/format.ts";
import type { Tone } from "../model/tone.ts";

/** The commits of the last minute, as they are shown. What is not known is `–`. */
export interface CommitFigures {
	readonly commits: string;
	readonly median: string;
	readonly p99: string;
	readonly p99Tone: Tone;
	/** How many commits a write to the storage has, in the mean. */
	readonly perWrite: string;
}

const unknown = "–";

/** Callers notice commits that take so long. */
const slowMs = 1_000;

/** The API tells no longer durations apart. */
const longestMs = 5_000;

/** Whether a storage reports on its recent commits. A server of an earlier version does not. */
export function hasCommitFigures({ commitDurations }: StorageOverview): boolean {
	return commitDurations.length > 0;
}

/** What a storage reports on its recent commits. */
export function commitFigures(storage: StorageOverview): CommitFigures {
	const { commitDurations, commitMedian, commitP99, batches, batchedCommits } = storage;
	if (!hasCommitFigures(storage)) {
		return { commits: unknown, median: unknown, p99: unknown, p99Tone: "plain", perWrite: unknown };
	}
	const isSlow = commitP99 !== undefined && exactMs(commitP99) >= slowMs;
	return {
		commits: count(commitDurations.reduce((sum, each) => sum + each, 0n)),
		median: durationText(commitMedian),
		p99: durationText(commitP99),
		p99Tone: isSlow ? "bad" : "plain",
		perWrite: batches === 0n ? unknown : (Number(batchedCommits) / Number(batches)).toFixed(1),
	};
}

function durationText(duration: Duration | undefined): string {
	if (duration === undefined) {
		return unknown;
	}
	const ms = exactMs(duration);
	return ms >= longestMs ? `≥ ${milliseconds(longestMs)}` : milliseconds(ms);
}

/** Unlike `durationMs`, it does not round up to whole milliseconds. */
function exactMs({ seconds, nanos }: Duration): number {
	return Number(seconds) * 1_000 + nanos / 1e6;
}
