import type {
	DescMessage,
	DescMethodBiDiStreaming,
	DescMethodClientStreaming,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	MessageInitShape,
	MessageShape,
} from "@bufbuild/protobuf";
import {
	type CallOptions,
	type Client,
	Code,
	ConnectError,
	makeAnyClient,
	type StreamResponse,
} from "@connectrpc/connect";
import { LeavableMessages } from "./streams/leavable-messages.ts";
import type { InProcessTransport, OpenStream } from "./streams/open-stream.ts";
import { StreamOfOne } from "./streams/stream-of-one.ts";

/**
 * A client of a service, as Connect's `createClient` makes them, that adds next to nothing to what
 * the transport costs, and tells it when a reader leaves a stream: after a `break`, or `return()` on
 * the iterator, the handler's signal aborts at once.
 */
export function createInProcessClient<S extends DescService>(
	service: S,
	transport: InProcessTransport,
): Client<S> {
	const client = makeAnyClient(service, (method) => {
		switch (method.methodKind) {
			case "unary":
				return unary(transport, method);
			case "server_streaming":
				return serverStreaming(transport, method);
			case "client_streaming":
				return clientStreaming(transport, method);
			case "bidi_streaming":
				return bidiStreaming(transport, method);
		}
	});
	// The descriptor's type says which methods there are; no value of it does.
	return client as Client<S>;
}

function unary<I extends DescMessage, O extends DescMessage>(
	transport: InProcessTransport,
	method: DescMethodUnary<I, O>,
) {
	return async (input: MessageInitShape<I>, options?: CallOptions): Promise<MessageShape<O>> => {
		const response = await transport.unary(
			method,
			options?.signal,
			options?.timeoutMs,
			options?.headers,
			input,
			options?.contextValues,
		);
		options?.onHeader?.(response.header);
		options?.onTrailer?.(response.trailer);
		return response.message;
	};
}

function serverStreaming<I extends DescMessage, O extends DescMessage>(
	transport: InProcessTransport,
	method: DescMethodServerStreaming<I, O>,
) {
	return (input: MessageInitShape<I>, options?: CallOptions): AsyncIterable<MessageShape<O>> =>
		new LeavableMessages(open(transport, method, new StreamOfOne(input), options), options);
}

function bidiStreaming<I extends DescMessage, O extends DescMessage>(
	transport: InProcessTransport,
	method: DescMethodBiDiStreaming<I, O>,
) {
	return (
		input: AsyncIterable<MessageInitShape<I>>,
		options?: CallOptions,
	): AsyncIterable<MessageShape<O>> =>
		new LeavableMessages(open(transport, method, input, options), options);
}

function clientStreaming<I extends DescMessage, O extends DescMessage>(
	transport: InProcessTransport,
	method: DescMethodClientStreaming<I, O>,
) {
	return async (
		input: AsyncIterable<MessageInitShape<I>>,
		options?: CallOptions,
	): Promise<MessageShape<O>> => {
		const stream = open(transport, method, input, options);
		const response = await stream.response;
		try {
			options?.onHeader?.(response.header);
			const message = await onlyMessage(response);
			options?.onTrailer?.(response.trailer);
			return message;
		} catch (error) {
			stream.leave();
			throw error;
		}
	};
}

function open<I extends DescMessage, O extends DescMessage>(
	transport: InProcessTransport,
	method: Parameters<typeof transport.openStream<I, O>>[0],
	input: AsyncIterable<MessageInitShape<I>>,
	options: CallOptions | undefined,
): OpenStream<I, O> {
	return transport.openStream(
		method,
		options?.signal,
		options?.timeoutMs,
		options?.headers,
		input,
		options?.contextValues,
	);
}

/** The one message of a response to a stream. The end is read too: with it come the trailers. */
async function onlyMessage<I extends DescMessage, O extends DescMessage>({
	method,
	message: messages,
}: StreamResponse<I, O>): Promise<MessageShape<O>> {
	const iterator = messages[Symbol.asyncIterator]();
	const first = await iterator.next();
	const second = first.done === true ? first : await iterator.next();
	if (first.done === true || second.done !== true) {
		const count = first.done === true ? "no message" : "more than one message";
		throw new ConnectError(
			`the response of ${method.parent.typeName}.${method.name} has ${count}`,
			Code.Unimplemented,
		);
	}
	return first.value;
}
