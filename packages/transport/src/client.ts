import type {
	DescMessage,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	MessageInitShape,
	MessageShape,
} from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, makeAnyClient } from "@connectrpc/connect";
import { LeavableMessages } from "./streams/leavable-messages.ts";
import type { LeavableTransport } from "./streams/open-stream.ts";

/**
 * A client of a service, like those of Connect's `createClient`, with less overhead. It also cancels a
 * stream when its reader leaves it: after a `break`, or `return()` on the iterator, the handler's
 * signal aborts at once.
 */
export function createLeavableClient<S extends DescService>(
	service: S,
	transport: LeavableTransport,
): Client<S> {
	const library = createClient<DescService>(service, transport);
	const client = makeAnyClient(service, (method) => {
		switch (method.methodKind) {
			case "unary":
				return unary(transport, method);
			case "server_streaming":
				return serverStreaming(transport, method);
			case "client_streaming":
			case "bidi_streaming":
				return library[method.localName] ?? null;
		}
	});
	// The type of the descriptor lists the methods; its value does not.
	return client as Client<S>;
}

function unary<I extends DescMessage, O extends DescMessage>(
	transport: LeavableTransport,
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
	transport: LeavableTransport,
	method: DescMethodServerStreaming<I, O>,
) {
	return (input: MessageInitShape<I>, options?: CallOptions): AsyncIterable<MessageShape<O>> =>
		new LeavableMessages(
			transport.openStream(
				method,
				options?.signal,
				options?.timeoutMs,
				options?.headers,
				input,
				options?.contextValues,
			),
			options,
		);
}
