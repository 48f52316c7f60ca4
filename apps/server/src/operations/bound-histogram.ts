import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import {
	AggregationTemporality,
	type DataPoint,
	DataPointType,
	type Histogram,
	type HistogramMetricData,
} from "@opentelemetry/sdk-metrics";

/** Name, description and buckets of a histogram. */
export interface HistogramOptions {
	readonly name: string;
	readonly description: string;
	/** Inclusive upper bounds of the buckets, in ascending order. */
	readonly boundaries: readonly number[];
}

/**
 * The values that were recorded with one set of attributes.
 *
 * An instrument of OpenTelemetry sorts and serializes the attributes with every value. With a series, its owner has
 * found it beforehand, so that `record` costs two additions and a short search.
 */
export class HistogramSeries {
	readonly attributes: Attributes;
	readonly #boundaries: readonly number[];
	readonly #counts: number[];
	#count = 0;
	#sum = 0;

	constructor(attributes: Attributes, boundaries: readonly number[]) {
		this.attributes = attributes;
		this.#boundaries = boundaries;
		this.#counts = new Array<number>(boundaries.length + 1).fill(0);
	}

	/** Records a value, which must not be negative. */
	record(value: number): void {
		const boundaries = this.#boundaries;
		let bucket = 0;
		while (bucket < boundaries.length && value > (boundaries[bucket] ?? 0)) {
			bucket += 1;
		}
		this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
		this.#count += 1;
		this.#sum += value;
	}

	/** A copy of all that was recorded since the series was created. */
	total(): Histogram {
		return {
			buckets: { boundaries: [...this.#boundaries], counts: [...this.#counts] },
			count: this.#count,
			sum: this.#sum,
		};
	}
}

/** A histogram whose attributes are bound once per series instead of being passed with each value. */
export class BoundHistogram {
	readonly #options: HistogramOptions;
	readonly #series: HistogramSeries[] = [];

	constructor(options: HistogramOptions) {
		this.#options = options;
	}

	/** Adds a series. The caller keeps it, and adds only one for the same attributes. */
	series(attributes: Attributes): HistogramSeries {
		const series = new HistogramSeries(attributes, this.#options.boundaries);
		this.#series.push(series);
		return series;
	}

	/**
	 * Series that differ in one attribute. Each is added when it is first asked for.
	 *
	 * @param common the attributes that all of them have.
	 */
	seriesBy(attribute: string, common: Attributes = {}): (value: string) => HistogramSeries {
		const known = new Map<string, HistogramSeries>();
		return (value) => {
			let series = known.get(value);
			if (series === undefined) {
				series = this.series({ ...common, [attribute]: value });
				known.set(value, series);
			}
			return series;
		};
	}

	/**
	 * Creates what one reader of metrics calls to collect this histogram.
	 *
	 * @param startMs since when values are recorded, in milliseconds since the epoch.
	 */
	reader(
		temporality: AggregationTemporality,
		startMs: number,
	): (nowMs: number) => HistogramMetricData {
		const { name, description } = this.#options;
		const descriptor = { name, description, unit: "", valueType: ValueType.DOUBLE };
		const delta = temporality === AggregationTemporality.DELTA;
		/** What this reader was given before, if it asked for differences. */
		const given = new Map<HistogramSeries, Histogram>();
		let startTime = millisToHrTime(startMs);
		return (nowMs) => {
			const endTime = millisToHrTime(nowMs);
			const dataPoints: DataPoint<Histogram>[] = [];
			for (const series of this.#series) {
				const total = series.total();
				const before = given.get(series);
				if (delta) {
					given.set(series, total);
				}
				const value = before === undefined ? total : difference(total, before);
				if (value.count > 0) {
					dataPoints.push(dataPoint(series, value, startTime, endTime));
				}
			}
			startTime = delta ? endTime : startTime;
			return {
				descriptor,
				aggregationTemporality: temporality,
				dataPointType: DataPointType.HISTOGRAM,
				dataPoints,
			};
		};
	}
}

function dataPoint(
	{ attributes }: HistogramSeries,
	value: Histogram,
	startTime: HrTime,
	endTime: HrTime,
): DataPoint<Histogram> {
	return { attributes, value, startTime, endTime };
}

/** What was recorded between two totals of the same series. */
function difference(total: Histogram, before: Histogram): Histogram {
	const { boundaries, counts } = total.buckets;
	return {
		buckets: {
			boundaries,
			counts: counts.map((count, bucket) => count - (before.buckets.counts[bucket] ?? 0)),
		},
		count: total.count - before.count,
		sum: (total.sum ?? 0) - (before.sum ?? 0),
	};
}
