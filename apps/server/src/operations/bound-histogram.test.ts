import {
	AggregationTemporality,
	type DataPoint,
	DataPointType,
	type Histogram,
	InMemoryMetricExporter,
	PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, it, onTestFinished } from "vitest";
import { createMetrics, type Metrics } from "./metrics.ts";

const options = { name: "wait.seconds", description: "How long it took", boundaries: [0.1, 1] };

/** Metrics with a reader that a user would give: it pushes when it is told to. */
function metricsWith(temporality: AggregationTemporality) {
	const exporter = new InMemoryMetricExporter(temporality);
	const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
	const metrics = createMetrics([reader]);
	onTestFinished(() => metrics.close());
	/** The data points of each histogram in one push. */
	const push = async () => {
		exporter.reset();
		await reader.forceFlush();
		const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
		const collected = scopes.flatMap(({ metrics }) => metrics);
		return Object.fromEntries(
			collected
				.filter((metric) => metric.dataPointType === DataPointType.HISTOGRAM)
				.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints.map(figures)]),
		);
	};
	return { metrics, push };
}

function figures({ attributes, value }: DataPoint<Histogram>) {
	const { buckets, count, sum } = value;
	return { step: attributes.step, counts: buckets.counts, count, sum };
}

/** Records the same values with a bound histogram and with OpenTelemetry's own. */
function recorders({ meter, histogram }: Metrics) {
	const bound = histogram({ ...options, name: "bound" });
	const steps = ["read", "write"].map((step) => ({ step, series: bound.series({ step }) }));
	const own = meter.createHistogram("own", {
		advice: { explicitBucketBoundaries: [...options.boundaries] },
	});
	return (step: string, value: number) => {
		steps.find((each) => each.step === step)?.series.record(value);
		own.record(value, { step });
	};
}

describe("a bound histogram", () => {
	it("counts a value in the first bucket whose upper bound is not below it, for Prometheus", async () => {
		const metrics = createMetrics();
		onTestFinished(() => metrics.close());
		const counter = metrics.meter.createCounter("other");
		const series = metrics.histogram(options).series({ step: "read" });
		metrics.histogram({ ...options, name: "unused.seconds" }).series({ step: "read" });
		counter.add(1);
		for (const value of [0, 0.1, 0.100_1, 1, 2]) {
			series.record(value);
		}
		const text = await metrics.prometheus();
		const lines = text.split("\n").filter((line) => line.includes("seconds"));
		expect(lines).toEqual([
			"# HELP wait_seconds How long it took",
			"# TYPE wait_seconds histogram",
			'wait_seconds_count{step="read"} 5',
			'wait_seconds_sum{step="read"} 3.2001',
			'wait_seconds_bucket{step="read",le="0.1"} 2',
			'wait_seconds_bucket{step="read",le="1"} 4',
			'wait_seconds_bucket{step="read",le="+Inf"} 5',
		]);
	});

	it("is collected without any other instrument", async () => {
		const metrics = createMetrics();
		onTestFinished(() => metrics.close());
		metrics.histogram(options).series({}).record(1);
		expect(await metrics.prometheus()).toContain("wait_seconds_count 1");
	});

	it.each([
		["totals", AggregationTemporality.CUMULATIVE],
		["what was recorded since the last push", AggregationTemporality.DELTA],
	])("pushes %s, as OpenTelemetry's own histogram does", async (_, temporality) => {
		const { metrics, push } = metricsWith(temporality);
		const record = recorders(metrics);
		record("read", 0.5);
		record("write", 5);
		const first = await push();
		record("read", 0.25);
		const second = await push();
		expect(first.bound).toHaveLength(2);
		expect(first.bound).toEqual(first.own);
		expect(second.bound).toHaveLength(temporality === AggregationTemporality.DELTA ? 1 : 2);
		expect(second.bound).toEqual(second.own);
	});
});
