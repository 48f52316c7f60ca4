import type { Meter } from "@opentelemetry/api";
import type { References } from "@plinth/db-constraint";
import type { Clock } from "@plinth/runtime";

/** Creates the instruments of references: their start, sources, pending work and holder queries. */
export function observeReferences(
	meter: Meter,
	clock: Pick<Clock, "now">,
	references: Pick<References, "metrics" | "state">,
): void {
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(name, { description });
	const sources = gauge(
		"plinth.reference.sources",
		"Deployments that reference a resource, over all resources, by whether this is confirmed",
	);
	const waiting = gauge(
		"plinth.reference.waiting",
		"Resources with pending work after a commit, or with a deletion in progress",
	);
	const oldest = gauge(
		"plinth.reference.waiting.oldest.seconds",
		"How long this server has seen the oldest of them waiting",
	);
	const cascades = gauge(
		"plinth.reference.cascades",
		"Deletions that have not been applied to all referencing resources yet",
	);
	const queries = meter.createObservableCounter("plinth.reference.questions", {
		description: "Queries that ask other deployments whether they reference a resource, by result",
	});
	const phases = gauge(
		"plinth.reference.phase",
		"1 for each phase of the start that the references have reached",
	);
	const outdated = gauge(
		"plinth.reference.registry.outdated.seconds",
		"How long some meta deployment could not be followed; 0 if all are followed",
	);
	meter.addBatchObservableCallback(
		(result) => {
			const { reached, registryOutdatedSince } = references.state;
			for (const phase of reached) {
				result.observe(phases, 1, { phase });
			}
			const outdatedMs =
				registryOutdatedSince === undefined ? 0 : clock.now() - registryOutdatedSince.getTime();
			result.observe(outdated, Math.max(0, outdatedMs) / 1_000);
			const now = references.metrics();
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
		[sources, waiting, oldest, cascades, queries, phases, outdated],
	);
}
