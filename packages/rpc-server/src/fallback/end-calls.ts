import type { Interceptor } from "@connectrpc/connect";

/**
 * Ends unary calls with the reason of the signal when it aborts, even if their handlers ignore their own signals.
 * The result of such a handler is dropped.
 */
export function endCalls(signal: AbortSignal): Interceptor {
	const running = new Set<() => void>();
	signal.addEventListener(
		"abort",
		() => {
			for (const end of running) {
				end();
			}
		},
		{ once: true },
	);
	return (next) => async (request) => {
		if (request.stream) {
			return next(request);
		}
		signal.throwIfAborted();
		const { promise: ended, reject } = Promise.withResolvers<never>();
		const end = () => reject(signal.reason);
		running.add(end);
		try {
			return await Promise.race([next(request), ended]);
		} finally {
			running.delete(end);
		}
	};
}
