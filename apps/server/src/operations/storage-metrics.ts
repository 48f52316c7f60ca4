import type { Tracer } from "@opentelemetry/api";
import type { Clock } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";
import type { Metrics } from "./metrics.ts";
import type { RecentCommits } from "./recent-commits.ts";

/** A storage whose commits are measured. */
export interface MeasuredStorage {
	readonly backend: StorageBackend;
	/** The commits that have succeeded. */
	readonly commits: () => number;
}

/**
 * Measures and traces the commits of a storage: their number, duration and mutations, and how many are in progress and
 * can share the next batch.
 */
export function measureStorage(
	backend: StorageBackend,
	{
		metrics: { meter, histogram },
		tracer,
		clock,
		recent,
		eachAlone,
	}: {
		readonly metrics: Pick<Metrics, "meter" | "histogram">;
		readonly tracer: Pick<Tracer, "startSpan">;
		readonly clock: Clock;
		/** Counts the commits that succeed. */
		readonly recent: Pick<RecentCommits, "committed" | "written">;
		/** Whether the storage writes each commit alone, and reports no batches. */
		readonly eachAlone: boolean;
	},
): MeasuredStorage {
	const durations = histogram({
		name: "plinth.commit.duration.seconds",
		description: "How long commits took, until they were durable",
		boundaries: [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
	}).seriesBy("result");
	const mutationsPerCommit = histogram({
		name: "plinth.commit.mutations",
		description: "Mutations of a commit",
		boundaries: [1, 2, 5, 10, 20, 50, 100],
	}).seriesBy("result");
	let inProgress = 0;
	let succeeded = 0;
	meter
		.createObservableGauge("plinth.commits.under_way", {
			description: "Commits that are not durable yet",
		})
		.addCallback((result) => result.observe(inProgress));

	const ended = (startMs: number, mutations: number, result: string) => {
		const endMs = clock.monotonic();
		inProgress -= 1;
		mutationsPerCommit(result).record(mutations);
		durations(result).record((endMs - startMs) / 1_000);
		if (result === "ok") {
			succeeded += 1;
			recent.committed(endMs - startMs, endMs);
			if (eachAlone) {
				recent.written(1);
			}
		}
	};
	const measured = decorateBackend(backend, {
		commit: async (mutations, options) => {
			if (options?.dryRun) {
				return backend.commit(mutations, options);
			}
			const startMs = clock.monotonic();
			inProgress += 1;
			const span = tracer.startSpan("commit", {
				attributes: { "plinth.mutations": mutations.length },
			});
			try {
				const commit = await backend.commit(mutations, options);
				ended(startMs, mutations.length, "ok");
				return commit;
			} catch (failure) {
				ended(startMs, mutations.length, failure instanceof Error ? failure.name : "Error");
				throw failure;
			} finally {
				span.end();
			}
		},
	});
	return { backend: measured, commits: () => succeeded };
}
