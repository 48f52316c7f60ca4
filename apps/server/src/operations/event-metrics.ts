import type { Meter } from "@opentelemetry/api";
import type { EventLog } from "@plinth/events";

/** Measures the events of a server. */
export function observeEvents(meter: Meter, log: Pick<EventLog, "state">): void {
	meter
		.createObservableGauge("plinth.events", { description: "Events that are kept" })
		.addCallback((result) => {
			result.observe(log.state.own, { recorded_by: "this_server" });
			result.observe(log.state.others, { recorded_by: "other_servers" });
		});
	meter
		.createObservableGauge("plinth.events.unstored", {
			description: "Resources whose events are not stored yet",
		})
		.addCallback((result) => result.observe(log.state.unstored));
	meter
		.createObservableCounter("plinth.events.recorded", {
			description: "Events that were recorded, repeated ones included",
		})
		.addCallback((result) => result.observe(log.state.recorded));
}
