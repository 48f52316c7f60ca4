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

/** Traces that go to a collector. */
export interface ExportedTraces {
	readonly provider: TracerProvider;
	/** Sends what is left. Never rejects: spans that can't be sent are logged as lost. */
	close(): Promise<void>;
}

/** Traces that go to a collector by OTLP over HTTP. What it does not take is lost, and that is logged. */
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
			// The exporter has reported what was lost.
			await provider.shutdown().catch(() => {});
		},
	};
}

/** Says once when spans begin to be lost, and once when they arrive again. */
function reportLoss(exporter: SpanExporter, url: string, logger: Logger): SpanExporter {
	let isLosing = false;
	return {
		export: (spans, told) =>
			exporter.export(spans, (result) => {
				const isLost = result.code === ExportResultCode.FAILED;
				if (isLost && !isLosing) {
					logger.warn(
						{ url, err: result.error },
						"traces are lost: the collector does not take them",
					);
				} else if (!isLost && isLosing) {
					logger.info({ url }, "the collector takes traces again");
				}
				isLosing = isLost;
				told(result);
			}),
		shutdown: () => exporter.shutdown(),
		forceFlush: async () => exporter.forceFlush?.(),
	};
}

function withSlash(url: URL): URL {
	return url.pathname.endsWith("/") ? url : new URL(`${url.href}/`);
}
