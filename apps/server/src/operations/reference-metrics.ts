import type { Meter } from "@opentelemetry/api";
import type { ReferenceMetrics } from "@plinth/db-constraint";

/** Makes the instruments of references: who references what, what waits, and who is asked. */
export function observeReferences(meter: Meter, read: () => ReferenceMetrics): void {
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(name, { description });
	const sources = gauge(
		"plinth.reference.sources",
		"Deployments that reference a resource, over all resources, by whether that is confirmed",
	);
	const waiting = gauge(
		"plinth.reference.waiting",
		"Resources with something left to be done after a commit, or a deletion under way",
	);
	const oldest = gauge(
		"plinth.reference.waiting.oldest.seconds",
		"How long this server has seen the one that waits longest",
	);
	const cascades = gauge(
		"plinth.reference.cascades",
		"Deletions that those who reference the resource have still to follow",
	);
	const queries = meter.createObservableCounter("plinth.reference.questions", {
		description: "Questions to other deployments whether they reference a resource, by result",
	});
	meter.addBatchObservableCallback(
		(result) => {
			const now = read();
			for (const [state, count] of Object.entries(now.sources)) {
				result.observe(sources, count, { state });
			}
			for (const [state, { count, oldestMs }] of Object.entries(now.waiting)) {
				result.observe(waiting, count, { state });
				result.observe(oldest, oldestMs / 1_000, { state });
			}
			result.observe(cascades, now.cascades);
			for (const { service, region, sent, failed } of now.holderQueries) {
				result.observe(queries, sent - failed, { service, region, result: "answered" });
				result.observe(queries, failed, { service, region, result: "failed" });
			}
		},
		[sources, waiting, oldest, cascades, queries],
	);
}
