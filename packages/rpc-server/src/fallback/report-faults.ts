import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";

/**
 * Reports errors of handlers that are not ConnectErrors, and are therefore bugs. The caller receives Internal without
 * details.
 */
export function reportFaults(
	onFault: ((call: Pick<HandlerContext, "method">, failure: unknown) => void) | undefined,
): Interceptor {
	return (next) => async (request) => {
		const explain = (failure: unknown): unknown => {
			if (failure instanceof ConnectError || request.signal.aborted) {
				return failure;
			}
			onFault?.(request, failure);
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
