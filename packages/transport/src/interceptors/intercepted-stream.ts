import type { DescMessage, DescMethodStreaming, Message, MessageShape } from "@bufbuild/protobuf";
import type {
	ConnectError,
	ContextValues,
	StreamRequest,
	StreamResponse,
} from "@connectrpc/connect";
import { canceledByReader } from "../call-errors.ts";
import type { CallRequest } from "../call-request.ts";
import { mapResults } from "../streams/map-results.ts";
import type { OpenStream } from "../streams/open-stream.ts";
import type { RequestMessages } from "../streams/request-messages.ts";
import { onlyMessage, streamOfOne } from "../streams/single-message.ts";
import { CallerScope } from "./caller-scope.ts";
import {
	changedKind,
	expectMessage,
	expectMessageIn,
	forwardedRequest,
	requestOf,
} from "./forwarded-request.ts";
import { chainInterceptors } from "./interceptor-chain.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** A call that was made by an interceptor. */
export interface OpenCall<I extends DescMessage, O extends DescMessage> extends OpenStream<I, O> {
	/** False once the call has ended, for whatever reason. */
	readonly isOpen: boolean;
}

/** Makes the call that the interceptors wrap. */
export type CallStream<I extends DescMessage, O extends DescMessage> = (
	request: CallRequest,
	messages: RequestMessages<I>,
) => OpenCall<I, O>;

/**
 * A streaming call, wrapped in the interceptors of the caller's side. They may make no call, one or
 * several; canceling this one cancels all of them.
 */
export class InterceptedStream<I extends DescMessage, O extends DescMessage>
	implements OpenStream<I, O>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #settings: TransportSettings;
	readonly #method: DescMethodStreaming<I, O>;
	readonly #callStream: CallStream<I, O>;
	readonly #callRequest: CallRequest;
	readonly #scope: CallerScope;
	/** Calls made by interceptors that may still be open. */
	readonly #calls = new Set<OpenCall<I, O>>();
	/** Set once the caller has stopped reading: the error of calls that interceptors make after that. */
	#left: ConnectError | undefined;

	constructor(
		settings: TransportSettings,
		method: DescMethodStreaming<I, O>,
		callRequest: CallRequest,
		contextValues: ContextValues | undefined,
		messages: RequestMessages<I>,
		callStream: CallStream<I, O>,
	) {
		this.#settings = settings;
		this.#method = method;
		this.#callStream = callStream;
		this.#callRequest = callRequest;
		this.#scope = new CallerScope(settings.clock, callRequest);
		this.response = this.#run(contextValues, messages);
	}

	cancel(): void {
		this.#left = canceledByReader();
		for (const call of this.#calls) {
			call.cancel();
		}
		this.#scope.end(this.#left);
	}

	async #run(
		contextValues: ContextValues | undefined,
		messages: RequestMessages<I>,
	): Promise<StreamResponse<I, O>> {
		try {
			const scope = this.#scope;
			const method = this.#method;
			const request: StreamRequest<I, O> = {
				...requestOf(this.#settings, method, this.#callRequest, contextValues),
				get signal() {
					return scope.signal;
				},
				stream: true,
				method,
				message: messages.kind === "one" ? streamOfOne(messages.message) : messages.messages,
			};
			const call = chainInterceptors(this.#settings.interceptors, async (forwarded) => {
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
			return { stream: true, service, method, header, trailer, message: this.#messagesOf(message) };
		} catch (thrown) {
			const error = this.#scope.fail(thrown);
			// An interceptor may have failed after its call began.
			this.cancel();
			throw error;
		}
	}

	/** The innermost call, without interceptors. */
	async #call(forwarded: StreamRequest, original: StreamRequest): Promise<StreamResponse<I, O>> {
		const messages = await this.#requestMessages(forwarded.message);
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
		const call = this.#callStream(request, messages);
		this.#calls.add(call);
		const { message, header, trailer } = await call.response;
		return { stream: true, service: method.parent, method, message, header, trailer };
	}

	/** The request messages that the interceptors passed on. */
	async #requestMessages(forwarded: AsyncIterable<Message>): Promise<RequestMessages<I>> {
		const { input, methodKind } = this.#method;
		if (methodKind === "server_streaming") {
			return { kind: "one", message: expectMessage(await onlyMessage(forwarded), input) };
		}
		const messages = mapResults(forwarded, (result) => expectMessageIn(result, input));
		return { kind: "many", messages };
	}

	/** The messages for the reader: their end ends the call, and an error is thrown once. */
	#messagesOf(intercepted: AsyncIterable<Message>): AsyncIterable<MessageShape<O>> {
		const messages = mapResults(intercepted, (result) => {
			if (result.done === true) {
				this.#scope.end();
			}
			return expectMessageIn(result, this.#method.output);
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
