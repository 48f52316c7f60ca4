import type { Meter } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { type IMetricReader, MeterProvider } from "@opentelemetry/sdk-metrics";
import { BoundHistogram, type HistogramOptions } from "./bound-histogram.ts";
import { HistogramReader } from "./histogram-reader.ts";

/** The metrics of a server, for OpenTelemetry and for Prometheus. */
export interface Metrics {
	/** Creates instruments. */
	readonly meter: Meter;
	/** Creates a histogram for values that are recorded with every call. */
	histogram(options: HistogramOptions): BoundHistogram;
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
	const meter = "plinth";
	const histograms: BoundHistogram[] = [];
	const provider = new MeterProvider({
		resource: resourceFromAttributes({ "service.name": "plinth-server" }),
		readers: [exporter, ...readers].map(
			(reader) => new HistogramReader(reader, { meter, histograms }),
		),
	});
	// Without prefix, timestamps, and labels or lines about the resource and the scope.
	const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
	return {
		meter: provider.getMeter(meter),
		histogram: (options) => {
			const histogram = new BoundHistogram(options);
			histograms.push(histogram);
			return histogram;
		},
		prometheus: async () => {
			const { resourceMetrics } = await exporter.collect();
			return serializer.serialize(resourceMetrics);
		},
		close: () => provider.shutdown(),
	};
}
