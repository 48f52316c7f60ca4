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

/** What interceptors are told of a call, besides its messages and its signal. */
export function requestOf(
	method: DescMethod,
	given: CallRequest,
	contextValues: ContextValues | undefined,
): Pick<UnaryRequest, "service" | "requestMethod" | "url" | "header" | "contextValues"> {
	return {
		service: method.parent,
		requestMethod: "POST",
		url: urlOf(method),
		header: given.header ?? new Headers(),
		contextValues: contextValues ?? createContextValues(),
	};
}

/** What the call itself gets of a request that came through the interceptors. */
export function requestOfHanded(
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

/** Interceptors may put other messages in the place of a call's, but of its type. */
export function expectMessage<Desc extends DescMessage>(
	message: Message,
	desc: Desc,
): MessageShape<Desc> {
	if (!isMessage(message, desc)) {
		throw new Error(`an interceptor put something else in the place of a ${desc.typeName}`);
	}
	return message;
}

/** What befalls the interceptor that answers a stream with a message, or the other way round. */
export function changedKind(method: DescMethod): Error {
	return new Error(
		`an interceptor of ${method.parent.typeName}.${method.name} changed whether it is a stream`,
	);
}
