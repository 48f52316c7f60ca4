import type { Meter } from "@opentelemetry/api";
import type { Peerings } from "@plinth/peering";

/** Creates the instruments of peerings: the imports that this server runs, and its streams to peers. */
export function observePeerings(meter: Meter, peerings: Pick<Peerings, "state">): void {
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(`plinth.peering.${name}`, { description });
	const counter = (name: string, description: string) =>
		meter.createObservableCounter(`plinth.peering.${name}`, { description });
	const state = gauge("import.state", "1 for the state of the import");
	const lag = gauge("import.lag.seconds", "For how long the copies have been behind");
	const age = gauge("import.age.seconds", "How long ago the other cluster was heard");
	const copies = gauge("import.copies", "The copies of the import, by type");
	const leftOut = gauge("import.left_out", "Resources and types that could not be copied");
	const received = counter("import.messages", "Messages that were received, heartbeats included");
	const streams = gauge("export.streams", "Open streams to the peer");
	const sent = counter("export.messages", "Messages that were sent, heartbeats included");
	const waiting = gauge(
		"export.unacknowledged",
		"Messages that were sent and that the peer has not stored",
	);
	const exportLag = gauge(
		"export.lag.seconds",
		"How long ago the oldest message was sent that the peer has not stored",
	);
	meter.addBatchObservableCallback(
		async (result) => {
			const { imports, exports } = await peerings.state();
			for (const each of imports) {
				const labels = { import: each.name };
				result.observe(state, 1, { ...labels, state: each.state });
				if (each.lagMs >= 0) {
					result.observe(lag, each.lagMs / 1_000, labels);
				}
				if (each.ageMs >= 0) {
					result.observe(age, each.ageMs / 1_000, labels);
				}
				for (const [type, count] of each.copies) {
					result.observe(copies, count, { ...labels, type });
				}
				result.observe(leftOut, each.leftOut, labels);
				result.observe(received, each.messages, labels);
			}
			for (const each of exports) {
				const labels = { peer: each.peer, export: each.export };
				result.observe(streams, each.streams, labels);
				result.observe(sent, each.messages, labels);
				result.observe(waiting, each.unacknowledged, labels);
				result.observe(exportLag, each.lagMs / 1_000, labels);
			}
		},
		[state, lag, age, copies, leftOut, received, streams, sent, waiting, exportLag],
	);
}
