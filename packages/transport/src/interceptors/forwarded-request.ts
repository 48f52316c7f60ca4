import {
	type DescMessage,
	type DescMethod,
	isMessage,
	type Message,
	type MessageShape,
} from "@bufbuild/protobuf";
import {
	type ContextValues,
	createContextValues,
	type StreamRequest,
	type UnaryRequest,
} from "@connectrpc/connect";
import type { CallRequest } from "../call-request.ts";
import { copyOfHeaders } from "../header-copies.ts";
import type { CallerScope } from "./caller-scope.ts";
import type { TransportSettings } from "./transport-settings.ts";

/*
 * Requests and responses of interceptors are plain objects, since interceptors spread them to change
 * a field. Only the signal is a getter, since creating it costs more than all the rest.
 */

/** The request for interceptors, without its messages and its signal. */
export function requestOf(
	settings: TransportSettings,
	method: DescMethod,
	callRequest: CallRequest,
	contextValues: ContextValues | undefined,
): Pick<UnaryRequest, "service" | "requestMethod" | "url" | "header" | "contextValues"> {
	return {
		service: method.parent,
		requestMethod: "POST",
		url: `${settings.baseUrl}/${method.parent.typeName}/${method.name}`,
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
		// A retry sends the same headers again: changes made by the first attempt's handler must not affect it.
		header: copyOfHeaders(forwarded.header),
		signal: forwarded === original ? scope.innerSignal : forwarded.signal,
		timeoutMs: callRequest.timeoutMs,
		deadlineMs: callRequest.deadlineMs,
	};
}

/** Interceptors may replace a message with another one of the same type. */
export function expectMessage<Desc extends DescMessage>(
	message: Message,
	desc: Desc,
): MessageShape<Desc> {
	if (!isMessage(message, desc)) {
		throw new Error(`an interceptor replaced a ${desc.typeName} with something else`);
	}
	return message;
}

/** Applies `expectMessage` to the result of an iterator. */
export function expectMessageIn<Desc extends DescMessage>(
	result: IteratorResult<Message, unknown>,
	desc: Desc,
): IteratorResult<MessageShape<Desc>, unknown> {
	return result.done === true ? result : { done: false, value: expectMessage(result.value, desc) };
}

/** The error of an interceptor that responds to a streaming call with a message, or to a unary call with a stream. */
export function changedKind(method: DescMethod): Error {
	return new Error(
		`an interceptor of ${method.parent.typeName}.${method.name} responded to a unary call with a stream, or the reverse`,
	);
}
