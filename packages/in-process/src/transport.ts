import {
	create,
	type DescMessage,
	type DescMethodServerStreaming,
	type MessageInitShape,
} from "@bufbuild/protobuf";
import type { ConnectRouter, ContextValues } from "@connectrpc/connect";
import { systemClock, systemScheduler } from "@plinth/runtime";
import type { CallRequest, Environment } from "./call/call.ts";
import { hopsThrough } from "./call/hops.ts";
import { RouteTable, unsupportedKind } from "./call/route-table.ts";
import { callUnary } from "./call/unary-call.ts";
import { interceptUnaryCall } from "./interceptors/client-interceptors.ts";
import { InterceptedStream } from "./interceptors/intercepted-stream.ts";
import type { InProcessTransportOptions } from "./options.ts";
import { failedStream, type InProcessTransport, type OpenStream } from "./streams/open-stream.ts";
import { onlyMessage } from "./streams/single-message.ts";
import { callStream } from "./streams/stream-call.ts";

/**
 * A transport to the services that `routes` registers, within this process. The handler receives the
 * message object that the caller passed, and the caller the one that the handler returned: nothing is
 * serialized or copied, so neither side may change a message after passing it on.
 *
 * Everything else works as on the wire: headers, trailers, interceptors on both sides, deadlines,
 * cancellation in both directions, errors with code, metadata and details. It supports unary and
 * server-streaming methods.
 */
export function createInProcessTransport(
	routes: (router: ConnectRouter) => void,
	options: InProcessTransportOptions = {},
): InProcessTransport {
	const clock = options.clock ?? systemClock;
	const table = new RouteTable({
		...(options.shutdownSignal && { shutdownSignal: options.shutdownSignal }),
		...options.router,
	});
	routes(table);
	const environment: Environment = {
		clock,
		hops: hopsThrough(options.scheduler ?? systemScheduler),
		routes: table,
	};

	function requestOf(
		signal: AbortSignal | undefined,
		ownTimeoutMs: number | undefined,
		header: ConstructorParameters<typeof Headers>[0],
	): CallRequest {
		const timeoutMs = effectiveTimeout(ownTimeoutMs, options.defaultTimeoutMs);
		return {
			signal,
			header: header === undefined ? undefined : new Headers(header),
			timeoutMs,
			deadlineMs: timeoutMs === undefined ? undefined : clock.monotonic() + timeoutMs,
		};
	}

	const interceptors = options.interceptors ?? [];
	const isIntercepted = interceptors.length > 0;
	const open = <I extends DescMessage, O extends DescMessage>(
		method: DescMethodServerStreaming<I, O>,
		request: CallRequest,
		input: MessageInitShape<I>,
		contextValues: ContextValues | undefined,
	): OpenStream<I, O> => {
		const message = create(method.input, input);
		return isIntercepted
			? new InterceptedStream(environment, interceptors, method, request, contextValues, message)
			: callStream(environment, method, request, message);
	};
	return {
		unary: async (method, signal, timeoutMs, header, input, contextValues) => {
			const request = requestOf(signal, timeoutMs, header);
			return isIntercepted
				? interceptUnaryCall(environment, interceptors, method, request, contextValues, input)
				: callUnary(environment, method, request, input);
		},
		stream: async (method, signal, timeoutMs, header, input, contextValues) => {
			if (method.methodKind !== "server_streaming") {
				throw unsupportedKind(method);
			}
			const request = requestOf(signal, timeoutMs, header);
			return open(method, request, await onlyMessage(input), contextValues).response;
		},
		openStream: (method, signal, timeoutMs, header, input, contextValues) => {
			try {
				return open(method, requestOf(signal, timeoutMs, header), input, contextValues);
			} catch (error) {
				return failedStream(error);
			}
		},
	};
}

/** As on the wire, a timeout of 0 or less means no timeout. */
function effectiveTimeout(
	timeoutMs: number | undefined,
	defaultTimeoutMs: number | undefined,
): number | undefined {
	if (timeoutMs === undefined) {
		return defaultTimeoutMs;
	}
	return timeoutMs > 0 ? timeoutMs : undefined;
}
