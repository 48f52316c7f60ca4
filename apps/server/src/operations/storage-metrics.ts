import type { Attributes, Meter, Tracer } from "@opentelemetry/api";
import type { Clock } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";

const succeeded: Attributes = { result: "ok" };

/**
 * Measures and traces the commits of a storage: their number, duration and mutations, and how many are in progress and
 * can share the next batch.
 */
export function measureStorage(
	backend: StorageBackend,
	{
		meter,
		tracer,
		clock,
	}: {
		readonly meter: Meter;
		readonly tracer: Pick<Tracer, "startSpan">;
		readonly clock: Clock;
	},
): StorageBackend {
	const duration = meter.createHistogram("plinth.commit.duration.seconds", {
		description: "How long commits took, until they were durable",
		advice: {
			explicitBucketBoundaries: [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
		},
	});
	const mutationsPerCommit = meter.createHistogram("plinth.commit.mutations", {
		description: "Mutations of a commit",
		advice: { explicitBucketBoundaries: [1, 2, 5, 10, 20, 50, 100] },
	});
	let inProgress = 0;
	meter
		.createObservableGauge("plinth.commits.under_way", {
			description: "Commits that are not durable yet",
		})
		.addCallback((result) => result.observe(inProgress));

	const ended = (startMs: number, mutations: number, labels: Attributes) => {
		inProgress -= 1;
		mutationsPerCommit.record(mutations, labels);
		duration.record((clock.monotonic() - startMs) / 1_000, labels);
	};
	return decorateBackend(backend, {
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
				ended(startMs, mutations.length, succeeded);
				return commit;
			} catch (failure) {
				ended(startMs, mutations.length, {
					result: failure instanceof Error ? failure.name : "Error",
				});
				throw failure;
			} finally {
				span.end();
			}
		},
	});
}
