import { AsyncLocalStorage } from "node:async_hooks";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Context,
	ProxyTracerProvider,
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
import type { CallObserver } from "@plinth/rpc-server";
import { resultOf } from "./audit.ts";

/** The traces of a server. */
export interface Tracing {
	/** Creates spans below the span of the current call, if any. */
	readonly tracer: Pick<Tracer, "startSpan">;
	/** Creates a span per call, below that of the caller if it sends a `traceparent`. */
	readonly observer: CallObserver;
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
	const observer: CallObserver = {
		started({ service, method, requestHeader }) {
			if (isIdle(provider)) {
				return undefined;
			}
			const parent = propagator.extract(ROOT_CONTEXT, requestHeader, getter);
			const span = tracer.startSpan(
				`${service.typeName}/${method.name}`,
				{
					kind: SpanKind.SERVER,
					attributes: {
						"rpc.system": "connect_rpc",
						"rpc.service": service.typeName,
						"rpc.method": method.name,
					},
				},
				parent,
			);
			const context = trace.setSpan(parent, span);
			return {
				run: (implementation) => current.run(context, implementation),
				ended: (failure) => end(span, failure, method.methodKind !== "unary"),
			};
		},
	};
	return {
		observer,
		tracer: {
			startSpan: (name, options, context) =>
				tracer.startSpan(name, options, context ?? current.getStore() ?? ROOT_CONTEXT),
		},
	};
}

/** The provider of a process in which nobody has registered one. */
const idle = new ProxyTracerProvider().getDelegate();

/** Whether all spans of a provider are dropped. */
function isIdle(provider: TracerProvider): boolean {
	return provider instanceof ProxyTracerProvider && provider.getDelegate() === idle;
}

/** Records the code of a failure, without its message, which may repeat written data. A canceled stream is no failure. */
function end(span: Span, failure: unknown, isStream: boolean): void {
	const isLeft = isStream && failure instanceof ConnectError && failure.code === Code.Canceled;
	if (failure !== undefined && !isLeft) {
		const code = resultOf(failure);
		span.setAttribute("rpc.connect_rpc.error_code", code);
		span.setStatus({ code: SpanStatusCode.ERROR, message: code });
	}
	span.end();
}
