import type { Interceptor } from "@connectrpc/connect";

/**
 * Answers calls that are no streams with the reason of the signal when it aborts, also where their handlers
 * take no notice of theirs. What such a handler comes to is dropped.
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
