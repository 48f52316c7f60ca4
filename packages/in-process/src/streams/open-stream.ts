import type { DescMessage, DescMethodStreaming, MessageInitShape } from "@bufbuild/protobuf";
import type { ContextValues, StreamResponse, Transport } from "@connectrpc/connect";

/** A call with streams that its caller can leave, also before its response begins. */
export interface OpenStream<I extends DescMessage, O extends DescMessage> {
	/**
	 * Resolves when the response begins. Its messages can be read once, and end for good: an error
	 * comes once, as with a generator.
	 */
	readonly response: Promise<StreamResponse<I, O>>;
	/**
	 * The caller wants no more: the handler's signal aborts after a hop, and what waits for the
	 * response or for a message is over. A stream that has ended stays as it is.
	 */
	leave(): void;
}

/** The transports of this package. */
export interface InProcessTransport extends Transport {
	/** `stream`, with a way to leave. Never throws: what fails the call is in its response. */
	openStream<I extends DescMessage, O extends DescMessage>(
		method: DescMethodStreaming<I, O>,
		signal: AbortSignal | undefined,
		timeoutMs: number | undefined,
		header: ConstructorParameters<typeof Headers>[0],
		input: AsyncIterable<MessageInitShape<I>>,
		contextValues?: ContextValues,
	): OpenStream<I, O>;
}

/** A call that failed before it was one. */
export function failedStream<I extends DescMessage, O extends DescMessage>(
	error: unknown,
): OpenStream<I, O> {
	return { response: Promise.reject(error), leave: () => {} };
}
