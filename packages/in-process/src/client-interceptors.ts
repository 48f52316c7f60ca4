import {
	create,
	type DescMessage,
	type DescMethod,
	type DescMethodStreaming,
	type DescMethodUnary,
	isMessage,
	type Message,
	type MessageInitShape,
	type MessageShape,
} from "@bufbuild/protobuf";
import {
	type ConnectError,
	type ContextValues,
	createContextValues,
	type Interceptor,
	type StreamRequest,
	type StreamResponse,
	type UnaryRequest,
	type UnaryResponse,
} from "@connectrpc/connect";
import type { CallRequest, Environment } from "./call.ts";
import { CallerScope } from "./caller-scope.ts";
import { copyOfHeaders } from "./header-copies.ts";
import { chained } from "./interceptor-chain.ts";
import { mapResults } from "./map-results.ts";
import { urlOf } from "./route-table.ts";
import { stopIterator } from "./stop-iterator.ts";
import { callStream } from "./stream-call.ts";
import { callUnary } from "./unary-call.ts";

/*
 * What interceptors are given and give back are plain objects, for they spread them to change a
 * field. Only the signal is a getter: it alone costs more than the rest.
 */

/** A unary call within the interceptors of the caller's side. */
export async function interceptUnaryCall<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	interceptors: readonly Interceptor[],
	method: DescMethodUnary<I, O>,
	given: CallRequest,
	contextValues: ContextValues | undefined,
	input: MessageInitShape<I>,
): Promise<UnaryResponse<I, O>> {
	const scope = new CallerScope(environment.clock, given);
	try {
		const request: UnaryRequest<I, O> = {
			...requestOf(method, given, contextValues),
			get signal() {
				return scope.signal;
			},
			stream: false,
			method,
			message: create(method.input, input),
		};
		const call = chained(interceptors, async (handed) => {
			if (handed.stream) {
				throw changedKind(method);
			}
			const inner = requestOfHanded(handed, request, given, scope);
			const response = await callUnary(
				environment,
				method,
				inner,
				expectMessage(handed.message, method.input),
			);
			return {
				stream: false,
				service: method.parent,
				method,
				message: response.message,
				header: response.header,
				trailer: response.trailer,
			};
		});
		const response = await call(request);
		if (response.stream) {
			throw changedKind(method);
		}
		scope.end();
		const { service, header, trailer, message } = response;
		return {
			stream: false,
			service,
			method,
			header,
			trailer,
			message: expectMessage(message, method.output),
		};
	} catch (thrown) {
		throw scope.fail(thrown);
	}
}

/** A call with streams within the interceptors of the caller's side. */
export async function interceptStreamCall<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	interceptors: readonly Interceptor[],
	method: DescMethodStreaming<I, O>,
	given: CallRequest,
	contextValues: ContextValues | undefined,
	input: AsyncIterable<MessageInitShape<I>>,
): Promise<StreamResponse<I, O>> {
	const scope = new CallerScope(environment.clock, given);
	const iterator = input[Symbol.asyncIterator]();
	const fail = (thrown: unknown) => {
		const error = scope.fail(thrown);
		stopIterator(iterator, error);
		return error;
	};
	try {
		const request: StreamRequest<I, O> = {
			...requestOf(method, given, contextValues),
			get signal() {
				return scope.signal;
			},
			stream: true,
			method,
			message: mapResults({ [Symbol.asyncIterator]: () => iterator }, (result) =>
				result.done === true ? result : { done: false, value: create(method.input, result.value) },
			),
		};
		const call = chained(interceptors, async (handed) => {
			if (!handed.stream) {
				throw changedKind(method);
			}
			const inner = requestOfHanded(handed, request, given, scope);
			const messages = mapResults(handed.message, (result) => expectIn(result, method.input));
			const response = await callStream(environment, method, inner, messages);
			return {
				stream: true,
				service: method.parent,
				method,
				message: response.message,
				header: response.header,
				trailer: response.trailer,
			};
		});
		const response = await call(request);
		if (!response.stream) {
			throw changedKind(method);
		}
		const { service, header, trailer, message } = response;
		const messages = mapResults(message, (result) => {
			if (result.done === true) {
				scope.end();
				stopIterator(iterator);
			}
			return expectIn(result, method.output);
		});
		return {
			stream: true,
			service,
			method,
			header,
			trailer,
			message: failingWith(messages, fail),
		};
	} catch (thrown) {
		throw fail(thrown);
	}
}

function requestOf(
	method: DescMethod,
	given: CallRequest,
	contextValues: ContextValues | undefined,
) {
	return {
		service: method.parent,
		requestMethod: "POST",
		url: urlOf(method),
		header: given.header ?? new Headers(),
		contextValues: contextValues ?? createContextValues(),
	};
}

/** What the call itself gets of a request that came through the interceptors. */
function requestOfHanded(
	handed: UnaryRequest | StreamRequest,
	original: UnaryRequest | StreamRequest,
	given: CallRequest,
	scope: CallerScope,
): CallRequest {
	return {
		// A retry sends the same headers again: what one handler does to them is not its business.
		header: copyOfHeaders(handed.header),
		signal: handed === original ? scope.innerSignal : handed.signal,
		timeoutMs: given.timeoutMs,
		deadlineMs: given.deadlineMs,
	};
}

function failingWith<T>(
	messages: AsyncIterable<T>,
	fail: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
	return {
		[Symbol.asyncIterator]() {
			const iterator = messages[Symbol.asyncIterator]();
			return {
				async next() {
					try {
						return await iterator.next();
					} catch (thrown) {
						throw fail(thrown);
					}
				},
				async return() {
					await iterator.return?.();
					return { done: true, value: undefined };
				},
			};
		},
	};
}

function expectIn<Desc extends DescMessage>(
	result: IteratorResult<Message, unknown>,
	desc: Desc,
): IteratorResult<MessageShape<Desc>, unknown> {
	return result.done === true ? result : { done: false, value: expectMessage(result.value, desc) };
}

function expectMessage<Desc extends DescMessage>(message: Message, desc: Desc): MessageShape<Desc> {
	if (!isMessage(message, desc)) {
		throw new Error(`an interceptor put something else in the place of a ${desc.typeName}`);
	}
	return message;
}

function changedKind(method: DescMethod): Error {
	return new Error(
		`an interceptor of ${method.parent.typeName}.${method.name} changed whether it is a stream`,
	);
}
