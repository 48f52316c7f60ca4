import { create, type DescMessage, type DescMethodServerStreaming } from "@bufbuild/protobuf";
import type { ConnectRouter, ContextValues } from "@connectrpc/connect";
import { systemClock, systemScheduler } from "@plinth/runtime";
import {
	type CallRequest,
	type CancelableTransport,
	createCallRequest,
	failedStream,
	InterceptedStream,
	interceptUnary,
	type OpenStream,
	onlyMessage,
	type RequestMessages,
	type TransportSettings,
} from "@plinth/transport";
import type { Environment } from "./call/call.ts";
import { hopsThrough } from "./call/hops.ts";
import { baseUrl, RouteTable, unsupportedKind } from "./call/route-table.ts";
import { callUnary } from "./call/unary-call.ts";
import type { InProcessTransportOptions } from "./options.ts";
import { callStream } from "./streams/stream-call.ts";

/** The transport of this package. */
export type InProcessTransport = CancelableTransport;

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

	const settings: TransportSettings = {
		clock,
		interceptors: options.interceptors ?? [],
		baseUrl,
		defaultTimeoutMs: options.defaultTimeoutMs,
	};
	const isIntercepted = settings.interceptors.length > 0;
	const open = <I extends DescMessage, O extends DescMessage>(
		method: DescMethodServerStreaming<I, O>,
		request: CallRequest,
		messages: RequestMessages<I>,
		contextValues: ContextValues | undefined,
	): OpenStream<I, O> => {
		const call = (inner: CallRequest, sent: RequestMessages<I>) => {
			if (sent.kind === "many") {
				throw unsupportedKind(method);
			}
			return callStream(environment, method, inner, sent.message);
		};
		return isIntercepted
			? new InterceptedStream(settings, method, request, contextValues, messages, call)
			: call(request, messages);
	};
	return {
		unary: async (method, signal, timeoutMs, header, input, contextValues) => {
			const request = createCallRequest(settings, signal, timeoutMs, header);
			return isIntercepted
				? interceptUnary(settings, method, request, contextValues, input, (inner, message) =>
						callUnary(environment, method, inner, message),
					)
				: callUnary(environment, method, request, input);
		},
		stream: async (method, signal, timeoutMs, header, input, contextValues) => {
			if (method.methodKind !== "server_streaming") {
				throw unsupportedKind(method);
			}
			const request = createCallRequest(settings, signal, timeoutMs, header);
			const message = create(method.input, await onlyMessage(input));
			return open(method, request, { kind: "one", message }, contextValues).response;
		},
		openStream: (method, signal, timeoutMs, header, input, contextValues) => {
			try {
				const request = createCallRequest(settings, signal, timeoutMs, header);
				const message = create(method.input, input);
				return open(method, request, { kind: "one", message }, contextValues);
			} catch (error) {
				return failedStream(error);
			}
		},
	};
}
