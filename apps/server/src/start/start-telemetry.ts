import { trace } from "@opentelemetry/api";
import type { RefusedCall } from "../limits/call-gate.ts";
import { auditRefusals } from "../operations/audit.ts";
import { type CallMetrics, createCallMetrics } from "../operations/call-metrics.ts";
import { createMetrics, type Metrics } from "../operations/metrics.ts";
import { observeProcess } from "../operations/process-metrics.ts";
import { createTracing, type Tracing } from "../operations/tracing.ts";
import type { StartContext } from "./start-context.ts";

/** Metrics and traces of a server. */
export interface Telemetry {
	readonly metrics: Metrics;
	readonly tracing: Tracing;
	readonly calls: CallMetrics;
	/** Counts a call that was refused before its request was decoded, and logs it if it is a write. */
	readonly onRefused: (refused: RefusedCall) => void;
}

/** Starts to measure the process, and creates the instruments of calls. */
export function startTelemetry({ options, logger, runtime, started }: StartContext): Telemetry {
	const { clock } = runtime;
	const metrics = createMetrics(options.metricReaders);
	started.defer(() => metrics.close());
	started.defer(observeProcess(metrics.meter));
	const tracing = createTracing(options.tracerProvider ?? trace.getTracerProvider());
	const calls = createCallMetrics(metrics, clock);
	const audit = auditRefusals({ logger, clock, onSuppressed: calls.auditSuppressed });
	const onRefused = (refused: RefusedCall) => {
		calls.refused(refused);
		audit(refused);
	};
	return { metrics, tracing, calls, onRefused };
}
