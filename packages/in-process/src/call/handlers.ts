import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type MethodImplSpec } from "@connectrpc/connect";
import { mapResults } from "@plinth/transport";
import { interceptStream, interceptUnary } from "../interceptors/server-interceptors.ts";
import type { RouterOptions } from "../options.ts";
import type { CallContext } from "./call-context.ts";
import type { Route } from "./route-table.ts";

/** What a handler may return: a message, or the fields of one. */
export type Response = MessageInitShape<DescMessage>;

/** Runs the handler of a unary method: gate, interceptors, implementation. */
export async function respondUnary(
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
	return interceptUnary(interceptors, spec.method, context, message, async (input, inner) =>
		create(spec.method.output, await spec.impl(input, inner)),
	);
}

/** Runs the handler of a server-streaming method, up to the point where its messages can be pulled. */
export async function openStream(
	{ spec, options }: Route,
	context: CallContext,
	message: Message,
	timeoutMs: number | undefined,
): Promise<AsyncIterable<Response>> {
	if (spec.kind !== "server_streaming") {
		throw wrongKind(spec, "a server stream");
	}
	if (options.requestGate !== undefined || options.maxTimeoutMs !== undefined) {
		await admit(options, context, timeoutMs);
	}
	const interceptors = options.interceptors;
	if (interceptors === undefined || interceptors.length === 0) {
		return spec.impl(message, context);
	}
	return interceptStream(interceptors, spec.method, context, message, (input, inner) =>
		mapResults(spec.impl(input, inner), (result) =>
			result.done === true
				? result
				: { done: false, value: create(spec.method.output, result.value) },
		),
	);
}

/** The checks that a call must pass before its message is read. */
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

function wrongKind(spec: MethodImplSpec, called: string): ConnectError {
	const { method } = spec;
	return new ConnectError(
		`${method.parent.typeName}.${method.name} is ${spec.kind} but was called as ${called}`,
		Code.Unimplemented,
	);
}
