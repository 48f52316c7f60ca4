import type {
	DescMessage,
	DescMethodServerStreaming,
	Message,
	MessageShape,
} from "@bufbuild/protobuf";
import type {
	ConnectError,
	ContextValues,
	Interceptor,
	StreamRequest,
	StreamResponse,
} from "@connectrpc/connect";
import type { CallRequest, Environment } from "../call/call.ts";
import { canceledBy } from "../call/wire-errors.ts";
import { mapResults } from "../streams/map-results.ts";
import type { OpenStream } from "../streams/open-stream.ts";
import { onlyMessage, streamOfOne } from "../streams/single-message.ts";
import { callStream, type StreamCall } from "../streams/stream-call.ts";
import { CallerScope } from "./caller-scope.ts";
import { changedKind, expectMessage, forwardedRequest, requestOf } from "./client-interceptors.ts";
import { chained } from "./interceptor-chain.ts";

/**
 * A server-streaming call inside the interceptors of the caller's side. They may make no call, one or
 * several; leaving this one leaves all of them.
 */
export class InterceptedStream<I extends DescMessage, O extends DescMessage>
	implements OpenStream<I, O>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #environment: Environment;
	readonly #method: DescMethodServerStreaming<I, O>;
	readonly #callRequest: CallRequest;
	readonly #scope: CallerScope;
	readonly #message: MessageShape<I>;
	/** Calls made by interceptors that may still be open. */
	readonly #calls = new Set<StreamCall<I, O>>();
	/** Set if the caller has left: the error of calls that interceptors make after that. */
	#left: ConnectError | undefined;

	constructor(
		environment: Environment,
		interceptors: readonly Interceptor[],
		method: DescMethodServerStreaming<I, O>,
		callRequest: CallRequest,
		contextValues: ContextValues | undefined,
		message: MessageShape<I>,
	) {
		this.#environment = environment;
		this.#method = method;
		this.#callRequest = callRequest;
		this.#scope = new CallerScope(environment.clock, callRequest);
		this.#message = message;
		this.response = this.#run(interceptors, contextValues);
	}

	cancel(): void {
		this.#left = canceledBy("the caller reads no further");
		for (const call of this.#calls) {
			call.cancel();
		}
		this.#scope.end(this.#left);
	}

	async #run(
		interceptors: readonly Interceptor[],
		contextValues: ContextValues | undefined,
	): Promise<StreamResponse<I, O>> {
		try {
			const scope = this.#scope;
			const method = this.#method;
			const request: StreamRequest<I, O> = {
				...requestOf(method, this.#callRequest, contextValues),
				get signal() {
					return scope.signal;
				},
				stream: true,
				method,
				message: streamOfOne(this.#message),
			};
			const call = chained(interceptors, async (forwarded) => {
				if (!forwarded.stream) {
					throw changedKind(method);
				}
				return this.#call(forwarded, request);
			});
			const response = await call(request);
			if (!response.stream) {
				throw changedKind(method);
			}
			const { service, header, trailer, message } = response;
			const messages = this.#messagesOf(message);
			return { stream: true, service, method, header, trailer, message: messages };
		} catch (thrown) {
			throw this.#scope.fail(thrown);
		}
	}

	/** The innermost call, without interceptors. */
	async #call(forwarded: StreamRequest, original: StreamRequest): Promise<StreamResponse<I, O>> {
		const message = expectMessage(await onlyMessage(forwarded.message), this.#method.input);
		if (this.#left !== undefined) {
			throw this.#left;
		}
		const method = this.#method;
		const request = forwardedRequest(forwarded, original, this.#callRequest, this.#scope);
		for (const earlier of this.#calls) {
			if (!earlier.isOpen) {
				this.#calls.delete(earlier);
			}
		}
		const call = callStream(this.#environment, method, request, message);
		this.#calls.add(call);
		const { message: messages, header, trailer } = await call.response;
		return { stream: true, service: method.parent, method, message: messages, header, trailer };
	}

	/** The messages for the reader: their end ends the call, and an error is thrown once. */
	#messagesOf(intercepted: AsyncIterable<Message>): AsyncIterable<MessageShape<O>> {
		const messages = mapResults(intercepted, (result) => {
			if (result.done === true) {
				this.#scope.end();
			}
			return expectIn(result, this.#method.output);
		})[Symbol.asyncIterator]();
		let hasFailed = false;
		const iterator: AsyncIterator<MessageShape<O>> = {
			next: async () => {
				if (hasFailed) {
					return { done: true, value: undefined };
				}
				try {
					return await messages.next();
				} catch (thrown) {
					hasFailed = true;
					throw this.#scope.fail(thrown);
				}
			},
			return: async () => {
				await messages.return?.();
				return { done: true, value: undefined };
			},
		};
		return { [Symbol.asyncIterator]: () => iterator };
	}
}

function expectIn<Desc extends DescMessage>(
	result: IteratorResult<Message, unknown>,
	desc: Desc,
): IteratorResult<MessageShape<Desc>, unknown> {
	return result.done === true ? result : { done: false, value: expectMessage(result.value, desc) };
}
