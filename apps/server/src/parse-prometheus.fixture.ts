import { createRequire } from "node:module";

/** A family of metrics, as an independent parser of the text format reads it. */
export interface MetricFamily {
	readonly name: string;
	readonly help: string;
	readonly type: string;
	readonly metrics: readonly {
		readonly value?: string;
		readonly labels?: Readonly<Record<string, string>>;
		readonly buckets?: Readonly<Record<string, string>>;
		readonly count?: string;
		readonly sum?: string;
	}[];
}

/** Reads the text format of Prometheus. The parser has no type declarations. */
export const parsePrometheus: (text: string) => readonly MetricFamily[] = createRequire(
	import.meta.url,
)("parse-prometheus-text-format");
