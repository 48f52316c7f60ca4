import type { Meter } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider } from "@opentelemetry/sdk-metrics";

/** The metrics of a server, for OpenTelemetry and for Prometheus. */
export interface Metrics {
	/** Creates instruments. */
	readonly meter: Meter;
	/** The current values, in the text format of Prometheus. */
	prometheus(): Promise<string>;
	close(): Promise<void>;
}

/** The media type of `Metrics.prometheus`. */
export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Creates the metrics of one server. Nothing is global: each server of a process has its own metrics.
 *
 * @param readers further readers of the metrics, such as one that pushes them to a collector.
 */
export function createMetrics(readers: readonly IMetricReader[] = []): Metrics {
	const exporter = new PrometheusExporter({ preventServerStart: true });
	const provider = new MeterProvider({
		resource: resourceFromAttributes({ "service.name": "plinth-server" }),
		readers: [exporter, ...readers],
	});
	// Without prefix, timestamps, and labels or lines about the resource and the scope.
	const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
	return {
		meter: provider.getMeter("plinth"),
		prometheus: async () => {
			const { resourceMetrics } = await exporter.collect();
			return serializer.serialize(resourceMetrics);
		},
		close: () => provider.shutdown(),
	};
}
