import type {
	DescMessage,
	DescMethodServerStreaming,
	DescMethodUnary,
	DescService,
	MessageInitShape,
	MessageShape,
} from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, makeAnyClient } from "@connectrpc/connect";
import { CancelableMessages } from "./streams/cancelable-messages.ts";
import type { CancelableTransport } from "./streams/open-stream.ts";

/**
 * A client of a service, like those of Connect's `createClient`, with less overhead. It also cancels a
 * stream when its reader stops reading: after a `break`, or `return()` on the iterator, the handler's
 * signal aborts at once.
 */
export function createCancelingClient<S extends DescService>(
	service: S,
	transport: CancelableTransport,
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
	transport: CancelableTransport,
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
	transport: CancelableTransport,
	method: DescMethodServerStreaming<I, O>,
) {
	return (input: MessageInitShape<I>, options?: CallOptions): AsyncIterable<MessageShape<O>> =>
		new CancelableMessages(
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
