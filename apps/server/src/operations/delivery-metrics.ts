import type { Meter } from "@opentelemetry/api";
import type { DeliveryLag } from "@plinth/storage";

/** Creates the instruments of deliveries to watches. They read how far the server is behind once per collection. */
export function observeDeliveries(meter: Meter, takeLag: () => DeliveryLag): void {
	const waiting = meter.createObservableGauge("plinth.watch.deliveries.waiting", {
		description: "Watches with an event that wait for their turn",
	});
	const longest = meter.createObservableGauge("plinth.watch.delivery.wait.seconds", {
		description:
			"The longest that a watch with an event has waited for its turn since the last scrape",
	});
	const behind = meter.createObservableCounter("plinth.watch.deliveries.behind.seconds", {
		description: "The time during which watches with events have waited for their turn",
	});
	meter.addBatchObservableCallback(
		(result) => {
			const lag = takeLag();
			result.observe(waiting, lag.waiting);
			result.observe(longest, lag.longestMs / 1_000);
			result.observe(behind, lag.behindMs / 1_000);
		},
		[waiting, longest, behind],
	);
}
