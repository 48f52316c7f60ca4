import {
	AggregationTemporality,
	type CollectionResult,
	type HistogramMetricData,
	type IMetricReader,
	InstrumentType,
	type MetricCollectOptions,
	type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { BoundHistogram } from "./bound-histogram.ts";

/** Which histograms a reader gets, and beside which instruments. */
export interface HistogramSource {
	/** The name of the meter whose instruments the histograms belong to. */
	readonly meter: string;
	readonly histograms: readonly BoundHistogram[];
}

/**
 * Gives a reader of metrics the bound histograms too, which OpenTelemetry's provider doesn't know. Observable gauges are delta
 * for it, whose values have no temporality: the cumulative ones of OpenTelemetry go on with the last value of what is not
 * observed any more, such as the state that an import has left.
 */
export class HistogramReader implements IMetricReader {
	readonly #reader: IMetricReader;
	readonly #source: HistogramSource;

	constructor(reader: IMetricReader, source: HistogramSource) {
		this.#reader = reader;
		this.#source = source;
	}

	setMetricProducer(producer: MetricProducer): void {
		const temporality = this.selectAggregationTemporality(InstrumentType.HISTOGRAM);
		this.#reader.setMetricProducer(new HistogramProducer(producer, this.#source, temporality));
	}

	selectAggregation(...args: Parameters<IMetricReader["selectAggregation"]>) {
		return this.#reader.selectAggregation(...args);
	}

	selectAggregationTemporality(type: InstrumentType): AggregationTemporality {
		return type === InstrumentType.OBSERVABLE_GAUGE
			? AggregationTemporality.DELTA
			: this.#reader.selectAggregationTemporality(type);
	}

	selectCardinalityLimit(...args: Parameters<IMetricReader["selectCardinalityLimit"]>) {
		return this.#reader.selectCardinalityLimit(...args);
	}

	collect(...args: Parameters<IMetricReader["collect"]>) {
		return this.#reader.collect(...args);
	}

	shutdown(...args: Parameters<IMetricReader["shutdown"]>) {
		return this.#reader.shutdown(...args);
	}

	forceFlush(...args: Parameters<IMetricReader["forceFlush"]>) {
		return this.#reader.forceFlush(...args);
	}
}

/** Adds the histograms to what the instruments of a meter produce. */
class HistogramProducer implements MetricProducer {
	readonly #producer: MetricProducer;
	readonly #source: HistogramSource;
	readonly #temporality: AggregationTemporality;
	readonly #startMs = Date.now();
	/** The collections of this reader, created when a histogram is first seen. */
	readonly #collections = new Map<BoundHistogram, (nowMs: number) => HistogramMetricData>();

	constructor(
		producer: MetricProducer,
		source: HistogramSource,
		temporality: AggregationTemporality,
	) {
		this.#producer = producer;
		this.#source = source;
		this.#temporality = temporality;
	}

	async collect(options?: MetricCollectOptions): Promise<CollectionResult> {
		const { resourceMetrics, errors } = await this.#producer.collect(options);
		const own = { scope: { name: this.#source.meter }, metrics: this.#collect(Date.now()) };
		const scopeMetrics = [...resourceMetrics.scopeMetrics, own];
		return { resourceMetrics: { ...resourceMetrics, scopeMetrics }, errors };
	}

	#collect(nowMs: number): HistogramMetricData[] {
		const collected: HistogramMetricData[] = [];
		for (const histogram of this.#source.histograms) {
			let collect = this.#collections.get(histogram);
			if (collect === undefined) {
				collect = histogram.reader(this.#temporality, this.#startMs);
				this.#collections.set(histogram, collect);
			}
			const metric = collect(nowMs);
			if (metric.dataPoints.length > 0) {
				collected.push(metric);
			}
		}
		return collected;
	}
}
