import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";

/**
 * Logs errors of handlers that are not ConnectErrors, which only a bug explains. The caller receives Internal
 * without details.
 */
export function reportFaults(logger: Logger): Interceptor {
	return (next) => async (request) => {
		const explain = (failure: unknown): unknown => {
			if (failure instanceof ConnectError || request.signal.aborted) {
				return failure;
			}
			logger.error({ method: request.method.name, err: failure }, "a handler failed");
			return new ConnectError("internal error", Code.Internal);
		};
		try {
			const response = await next(request);
			return response.stream
				? { ...response, message: explained(response.message, explain) }
				: response;
		} catch (failure) {
			throw explain(failure);
		}
	};
}

async function* explained<T>(
	messages: AsyncIterable<T>,
	explain: (failure: unknown) => unknown,
): AsyncIterable<T> {
	try {
		yield* messages;
	} catch (failure) {
		throw explain(failure);
	}
}
