import type { Meter } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider } from "@opentelemetry/sdk-metrics";

/** What a server measures, for OpenTelemetry and for Prometheus. */
export interface Metrics {
	/** Where instruments are made. */
	readonly meter: Meter;
	/** What was measured until now, in the text format of Prometheus. */
	prometheus(): Promise<string>;
	close(): Promise<void>;
}

/** The media type of `Metrics.prometheus`. */
export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Metrics of one server. Nothing is global: each server of a process has its own.
 *
 * @param readers others that read the same metrics, as one that pushes them to a collector.
 */
export function createMetrics(readers: readonly IMetricReader[] = []): Metrics {
	const exporter = new PrometheusExporter({ preventServerStart: true });
	const provider = new MeterProvider({
		resource: resourceFromAttributes({ "service.name": "plinth-server" }),
		readers: [exporter, ...readers],
	});
	// No prefix, no times, and neither labels nor lines about the resource and the scope.
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
