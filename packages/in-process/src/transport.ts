import type { ConnectRouter } from "@connectrpc/connect";
import { systemClock, systemScheduler } from "@plinth/runtime";
import type { CallRequest, Environment } from "./call/call.ts";
import { hopsThrough } from "./call/hops.ts";
import { RouteTable } from "./call/route-table.ts";
import { callUnary } from "./call/unary-call.ts";
import { interceptUnaryCall } from "./interceptors/client-interceptors.ts";
import { InterceptedStream } from "./interceptors/intercepted-stream.ts";
import type { InProcessTransportOptions } from "./options.ts";
import { failedStream, type InProcessTransport } from "./streams/open-stream.ts";
import { callStream } from "./streams/stream-call.ts";

/**
 * A transport to the services that `routes` registers, within this process. The handler gets the
 * very message that the caller passed, and the caller the very message that the handler returned:
 * nothing is serialized or copied, so neither side may change a message that it gave away.
 *
 * All else is as on the wire: headers, trailers, interceptors on both sides, deadlines,
 * cancellation both ways, errors with code, metadata and details.
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
		givenTimeoutMs: number | undefined,
		header: ConstructorParameters<typeof Headers>[0],
	): CallRequest {
		const timeoutMs = effectiveTimeout(givenTimeoutMs, options.defaultTimeoutMs);
		return {
			signal,
			header: header === undefined ? undefined : new Headers(header),
			timeoutMs,
			deadlineMs: timeoutMs === undefined ? undefined : clock.monotonic() + timeoutMs,
		};
	}

	const interceptors = options.interceptors ?? [];
	const isIntercepted = interceptors.length > 0;
	const openStream: InProcessTransport["openStream"] = (
		method,
		signal,
		timeoutMs,
		header,
		input,
		contextValues,
	) => {
		try {
			const request = requestOf(signal, timeoutMs, header);
			return isIntercepted
				? new InterceptedStream(environment, interceptors, method, request, contextValues, input)
				: callStream(environment, method, request, input);
		} catch (error) {
			return failedStream(error);
		}
	};
	return {
		unary: async (method, signal, timeoutMs, header, input, contextValues) => {
			const request = requestOf(signal, timeoutMs, header);
			return isIntercepted
				? interceptUnaryCall(environment, interceptors, method, request, contextValues, input)
				: callUnary(environment, method, request, input);
		},
		stream: (...call) => openStream(...call).response,
		openStream,
	};
}

/** As on the wire, a timeout that is not positive says that there is none. */
function effectiveTimeout(
	timeoutMs: number | undefined,
	defaultTimeoutMs: number | undefined,
): number | undefined {
	if (timeoutMs === undefined) {
		return defaultTimeoutMs;
	}
	return timeoutMs > 0 ? timeoutMs : undefined;
}
