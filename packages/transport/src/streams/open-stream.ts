import type { DescMessage, DescMethodServerStreaming, MessageInitShape } from "@bufbuild/protobuf";
import type { ContextValues, StreamResponse, Transport } from "@connectrpc/connect";

/** A server-streaming call that its caller can cancel, even before its response begins. */
export interface OpenStream<I extends DescMessage, O extends DescMessage> {
	/**
	 * Resolves when the response begins. Its messages can be read once; as with a generator, an error
	 * is thrown once, and then the stream has ended.
	 */
	readonly response: Promise<StreamResponse<I, O>>;
	/**
	 * Cancels the call: the handler's signal aborts, and pending reads end. Has no effect on a stream
	 * that has ended.
	 */
	cancel(): void;
}

/** A transport whose streams can be canceled by their readers. */
export interface CancelableTransport extends Transport {
	/** Like `stream`, but the call can be canceled. Never throws: `response` rejects if the call fails. */
	openStream<I extends DescMessage, O extends DescMessage>(
		method: DescMethodServerStreaming<I, O>,
		signal: AbortSignal | undefined,
		timeoutMs: number | undefined,
		header: ConstructorParameters<typeof Headers>[0],
		input: MessageInitShape<I>,
		contextValues?: ContextValues,
	): OpenStream<I, O>;
}

/** A call that failed before it was made. */
export function failedStream<I extends DescMessage, O extends DescMessage>(
	error: unknown,
): OpenStream<I, O> {
	return { response: Promise.reject(error), cancel: () => {} };
}
