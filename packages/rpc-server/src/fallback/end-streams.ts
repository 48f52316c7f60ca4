import type { Interceptor } from "@connectrpc/connect";

/**
 * Ends streams with the reason of the signal when it aborts. Unary calls may finish.
 */
export function endStreams(signal: AbortSignal): Interceptor {
	return (next) => (request) =>
		request.stream
			? next({ ...request, signal: AbortSignal.any([request.signal, signal]) })
			: next(request);
}
