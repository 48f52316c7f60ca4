import { AsyncLocalStorage } from "node:async_hooks";
import type { Interceptor } from "@connectrpc/connect";
import {
	type Context,
	ROOT_CONTEXT,
	type Span,
	SpanKind,
	SpanStatusCode,
	type TextMapGetter,
	type Tracer,
	type TracerProvider,
	trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { resultOf } from "./audit.ts";

/** The traces of a server. */
export interface Tracing {
	/** Creates spans below the span of the current call, if any. */
	readonly tracer: Pick<Tracer, "startSpan">;
	/** Creates a span per call, below that of the caller if it sends a `traceparent`. */
	readonly interceptor: Interceptor;
}

const propagator = new W3CTraceContextPropagator();

const getter: TextMapGetter<Headers> = {
	keys: (headers) => [...headers.keys()],
	get: (headers, key) => headers.get(key) ?? undefined,
};

/** Traces calls with the tracers of a provider. */
export function createTracing(provider: TracerProvider): Tracing {
	const tracer = provider.getTracer("plinth");
	const current = new AsyncLocalStorage<Context>();
	const interceptor: Interceptor = (next) => async (request) => {
		const parent = propagator.extract(ROOT_CONTEXT, request.header, getter);
		const span = tracer.startSpan(
			`${request.service.typeName}/${request.method.name}`,
			{
				kind: SpanKind.SERVER,
				attributes: {
					"rpc.system": "connect_rpc",
					"rpc.service": request.service.typeName,
					"rpc.method": request.method.name,
				},
			},
			parent,
		);
		return current.run(trace.setSpan(parent, span), async () => {
			try {
				const response = await next(request);
				if (response.stream) {
					request.signal.addEventListener("abort", () => span.end(), { once: true });
				} else {
					span.end();
				}
				return response;
			} catch (failure) {
				failed(span, failure);
				throw failure;
			}
		});
	};
	return {
		interceptor,
		tracer: {
			startSpan: (name, options, context) =>
				tracer.startSpan(name, options, context ?? current.getStore() ?? ROOT_CONTEXT),
		},
	};
}

/** Records the code of a failure, without its message, which may repeat written data. */
function failed(span: Span, failure: unknown): void {
	const code = resultOf(failure);
	span.setAttribute("rpc.connect_rpc.error_code", code);
	span.setStatus({ code: SpanStatusCode.ERROR, message: code });
	span.end();
}
