import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type MethodImplSpec } from "@connectrpc/connect";
import { interceptStream, interceptUnary } from "../interceptors/server-interceptors.ts";
import type { RouterOptions } from "../options.ts";
import { mapResults } from "../streams/map-results.ts";
import type { CallContext } from "./call-context.ts";
import type { Route } from "./route-table.ts";

/** What a handler may answer: a message, or the fields of one. */
export type Answer = MessageInitShape<DescMessage>;

/** Runs the handler of a unary method: gate, interceptors, implementation. */
export async function answerUnary(
	{ spec, options }: Route,
	context: CallContext,
	message: Message,
	timeoutMs: number | undefined,
): Promise<Message> {
	if (spec.kind !== "unary") {
		throw wrongKind(spec, "unary");
	}
	if (options.requestGate !== undefined || options.maxTimeoutMs !== undefined) {
		await admit(options, context, timeoutMs);
	}
	const interceptors = options.interceptors;
	if (interceptors === undefined || interceptors.length === 0) {
		return create(spec.method.output, await spec.impl(message, context));
	}
	return interceptUnary(interceptors, spec.method, context, message, async (input, within) =>
		create(spec.method.output, await spec.impl(input, within)),
	);
}

/** Runs the handler of a method with streams, up to the point where its messages can be pulled. */
export async function openStream(
	{ spec, options }: Route,
	context: CallContext,
	requests: AsyncIterable<Message>,
	timeoutMs: number | undefined,
): Promise<AsyncIterable<Answer>> {
	if (spec.kind === "unary") {
		throw wrongKind(spec, "a stream");
	}
	if (options.requestGate !== undefined || options.maxTimeoutMs !== undefined) {
		await admit(options, context, timeoutMs);
	}
	const interceptors = options.interceptors;
	if (interceptors === undefined || interceptors.length === 0) {
		return invokeStream(spec, requests, context);
	}
	return interceptStream(interceptors, spec.method, context, requests, async (input, within) =>
		mapResults(await invokeStream(spec, input, within), (result) =>
			result.done === true
				? result
				: { done: false, value: create(spec.method.output, result.value) },
		),
	);
}

/** What a call must pass before any of its messages is looked at. */
async function admit(
	options: RouterOptions,
	context: CallContext,
	timeoutMs: number | undefined,
): Promise<void> {
	await options.requestGate?.(context);
	const { maxTimeoutMs } = options;
	if (timeoutMs !== undefined && maxTimeoutMs !== undefined && timeoutMs > maxTimeoutMs) {
		throw new ConnectError(
			`the timeout of ${timeoutMs} ms is longer than the ${maxTimeoutMs} ms that are allowed`,
			Code.InvalidArgument,
		);
	}
}

async function invokeStream(
	spec: Exclude<MethodImplSpec, { kind: "unary" }>,
	requests: AsyncIterable<Message>,
	context: HandlerContext,
): Promise<AsyncIterable<Answer>> {
	switch (spec.kind) {
		case "server_streaming":
			return spec.impl(await onlyMessage(requests), context);
		case "client_streaming":
			return single(await spec.impl(requests, context));
		case "bidi_streaming":
			return spec.impl(requests, context);
	}
}

/** The message of a method that takes one, of a transport that sends them as a stream. */
async function onlyMessage(requests: AsyncIterable<Message>): Promise<Message> {
	const iterator = requests[Symbol.asyncIterator]();
	const first = await iterator.next();
	if (first.done === true) {
		throw new ConnectError("the request has no message", Code.Unimplemented);
	}
	const second = await iterator.next();
	if (second.done !== true) {
		throw new ConnectError("the request has more than one message", Code.Unimplemented);
	}
	return first.value;
}

async function* single(answer: Answer): AsyncIterable<Answer> {
	yield answer;
}

function wrongKind(spec: MethodImplSpec, asked: string): ConnectError {
	const { method } = spec;
	return new ConnectError(
		`${method.parent.typeName}.${method.name} is ${spec.kind}, and was called as ${asked}`,
		Code.Unimplemented,
	);
}
