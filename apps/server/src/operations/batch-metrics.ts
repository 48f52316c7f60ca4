import type { Meter } from "@opentelemetry/api";
import type { CommitBatch } from "@plinth/storage";
import type { RecentCommits } from "./recent-commits.ts";

/** Creates the instruments of group commits. Returns a function that records one batch, also among the recent commits. */
export function measureBatches(
	meter: Meter,
	recent: Pick<RecentCommits, "written">,
): (batch: CommitBatch) => void {
	const size = meter.createHistogram("plinth.commit.batch.size", {
		description: "Commits that shared one write to the disk, or one transaction of etcd",
		advice: { explicitBucketBoundaries: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000] },
	});
	const seconds = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
	const wait = meter.createHistogram("plinth.commit.batch.wait.seconds", {
		description: "How long the oldest commit of a batch waited before its write",
		advice: { explicitBucketBoundaries: seconds },
	});
	const write = meter.createHistogram("plinth.commit.batch.write.seconds", {
		description: "How long the write of a batch took",
		advice: { explicitBucketBoundaries: seconds },
	});
	return ({ commits, longestWaitMs, writeMs }) => {
		recent.written(commits);
		size.record(commits);
		wait.record(longestWaitMs / 1_000);
		write.record(writeMs / 1_000);
	};
}
