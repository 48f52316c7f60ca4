import {
	create,
	type DescMessage,
	type DescMethod,
	type DescMethodUnary,
	isMessage,
	type Message,
	type MessageInitShape,
	type MessageShape,
} from "@bufbuild/protobuf";
import {
	type ContextValues,
	createContextValues,
	type Interceptor,
	type StreamRequest,
	type UnaryRequest,
	type UnaryResponse,
} from "@connectrpc/connect";
import type { CallRequest, Environment } from "../call/call.ts";
import { copyOfHeaders } from "../call/header-copies.ts";
import { urlOf } from "../call/route-table.ts";
import { callUnary } from "../call/unary-call.ts";
import { CallerScope } from "./caller-scope.ts";
import { chained } from "./interceptor-chain.ts";

/*
 * Requests and responses of interceptors are plain objects, since interceptors spread them to change
 * a field. Only the signal is a getter: it alone costs more than the rest.
 */

/** Runs a unary call inside the interceptors of the caller's side. */
export async function interceptUnaryCall<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	interceptors: readonly Interceptor[],
	method: DescMethodUnary<I, O>,
	callRequest: CallRequest,
	contextValues: ContextValues | undefined,
	input: MessageInitShape<I>,
): Promise<UnaryResponse<I, O>> {
	const scope = new CallerScope(environment.clock, callRequest);
	try {
		const request: UnaryRequest<I, O> = {
			...requestOf(method, callRequest, contextValues),
			get signal() {
				return scope.signal;
			},
			stream: false,
			method,
			message: create(method.input, input),
		};
		const call = chained(interceptors, async (forwarded) => {
			if (forwarded.stream) {
				throw changedKind(method);
			}
			const inner = forwardedRequest(forwarded, request, callRequest, scope);
			const response = await callUnary(
				environment,
				method,
				inner,
				expectMessage(forwarded.message, method.input),
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

/** The request for interceptors, without its messages and its signal. */
export function requestOf(
	method: DescMethod,
	callRequest: CallRequest,
	contextValues: ContextValues | undefined,
): Pick<UnaryRequest, "service" | "requestMethod" | "url" | "header" | "contextValues"> {
	return {
		service: method.parent,
		requestMethod: "POST",
		url: urlOf(method),
		header: callRequest.header ?? new Headers(),
		contextValues: contextValues ?? createContextValues(),
	};
}

/** The metadata of the call that is made for a request that passed through the interceptors. */
export function forwardedRequest(
	forwarded: UnaryRequest | StreamRequest,
	original: UnaryRequest | StreamRequest,
	callRequest: CallRequest,
	scope: CallerScope,
): CallRequest {
	return {
		// A retry sends the same headers again: changes by the first handler must not affect it.
		header: copyOfHeaders(forwarded.header),
		signal: forwarded === original ? scope.innerSignal : forwarded.signal,
		timeoutMs: callRequest.timeoutMs,
		deadlineMs: callRequest.deadlineMs,
	};
}

/** Interceptors may replace messages by others of the same type. */
export function expectMessage<Desc extends DescMessage>(
	message: Message,
	desc: Desc,
): MessageShape<Desc> {
	if (!isMessage(message, desc)) {
		throw new Error(`an interceptor replaced a ${desc.typeName} by something else`);
	}
	return message;
}

/** The error if an interceptor responds to a stream with a message, or to a message with a stream. */
export function changedKind(method: DescMethod): Error {
	return new Error(
		`an interceptor of ${method.parent.typeName}.${method.name} changed whether it is a stream`,
	);
}
