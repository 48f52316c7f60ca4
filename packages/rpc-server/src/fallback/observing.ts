import type { Message } from "@bufbuild/protobuf";
import {
	Code,
	ConnectError,
	type HandlerContext,
	type Interceptor,
	type StreamRequest,
	type UnaryRequest,
} from "@connectrpc/connect";
import { type CallObserver, type ObservedCall, observe } from "../observers.ts";

/** Observes calls that Connect's handlers serve. */
export function observing(observers: readonly CallObserver[]): Interceptor {
	return (next) => async (request) => {
		const message = request.stream ? undefined : request.message;
		const observed = observe(observers, contextOf(request), message);
		if (observed === undefined) {
			return next(request);
		}
		try {
			const response = await (observed.run?.(() => next(request)) ?? next(request));
			if (!response.stream) {
				observed.ended(undefined);
				return response;
			}
			return { ...response, message: observedMessages(response.message, observed) };
		} catch (failure) {
			observed.ended(failure);
			throw failure;
		}
	};
}

/** The context of the call, with the parts that interceptors see. */
function contextOf(request: UnaryRequest | StreamRequest): HandlerContext {
	return {
		method: request.method,
		service: request.service,
		url: request.url,
		requestMethod: request.requestMethod,
		requestHeader: request.header,
		values: request.contextValues,
		protocolName: "",
		responseHeader: new Headers(),
		responseTrailer: new Headers(),
		timeoutMs: () => undefined,
		get signal() {
			return request.signal;
		},
	};
}

/** Not a generator: one would cost as much per message as all the rest of a stream. */
function observedMessages(
	messages: AsyncIterable<Message>,
	observed: ObservedCall,
): AsyncIterable<Message> {
	return {
		[Symbol.asyncIterator]() {
			const iterator = messages[Symbol.asyncIterator]();
			let hasEnded = false;
			const end = (failure: unknown) => {
				if (!hasEnded) {
					hasEnded = true;
					observed.ended(failure);
				}
			};
			return {
				async next() {
					observed.ready?.();
					try {
						const result = await iterator.next();
						if (result.done === true) {
							end(undefined);
						} else {
							observed.sent?.();
						}
						return result;
					} catch (failure) {
						end(failure);
						throw failure;
					}
				},
				async return(value) {
					end(new ConnectError("the caller stopped reading", Code.Canceled));
					return (await iterator.return?.(value)) ?? { done: true, value };
				},
			};
		},
	};
}
