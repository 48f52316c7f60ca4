import type { TracerProvider } from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
	BatchSpanProcessor,
	ParentBasedSampler,
	TracerProvider as SdkTracerProvider,
	type SpanExporter,
	TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "@plinth/runtime";

/** Traces that are sent to a collector. */
export interface ExportedTraces {
	readonly provider: TracerProvider;
	/** Sends the remaining spans. Never rejects: spans that can't be sent are logged as lost. */
	close(): Promise<void>;
}

/** Sends traces to a collector by OTLP over HTTP. Spans that it does not accept are lost, which is logged. */
export function exportTraces(endpoint: URL, logger: Logger): ExportedTraces {
	const url = new URL("v1/traces", withSlash(endpoint)).href;
	const exporter = new OTLPTraceExporter({ url, timeoutMillis: 5_000 });
	const provider = new SdkTracerProvider({
		resource: resourceFromAttributes({ "service.name": "plinth-server" }),
		sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(1) }),
		spanProcessors: [new BatchSpanProcessor({ exporter: reportLoss(exporter, url, logger) })],
	});
	return {
		provider,
		close: async () => {
			// The exporter has reported lost spans.
			await provider.shutdown().catch(() => {});
		},
	};
}

/** Logs once when spans start to be lost, and once when they arrive again. */
function reportLoss(exporter: SpanExporter, url: string, logger: Logger): SpanExporter {
	let isLosing = false;
	return {
		export: (spans, done) =>
			exporter.export(spans, (result) => {
				const isLost = result.code === ExportResultCode.FAILED;
				if (isLost && !isLosing) {
					logger.warn(
						{ url, err: result.error },
						"traces are lost: the collector does not accept them",
					);
				} else if (!isLost && isLosing) {
					logger.info({ url }, "the collector accepts traces again");
				}
				isLosing = isLost;
				done(result);
			}),
		shutdown: () => exporter.shutdown(),
		forceFlush: async () => exporter.forceFlush?.(),
	};
}

function withSlash(url: URL): URL {
	return url.pathname.endsWith("/") ? url : new URL(`${url.href}/`);
}
