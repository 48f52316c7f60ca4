import {
	create,
	type DescMessage,
	type DescMethodStreaming,
	type Message,
	type MessageInitShape,
	type MessageShape,
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
import { stopIterator } from "../streams/stop-iterator.ts";
import { callStream, type StreamCall } from "../streams/stream-call.ts";
import { CallerScope } from "./caller-scope.ts";
import { changedKind, expectMessage, requestOf, requestOfHanded } from "./client-interceptors.ts";
import { chained } from "./interceptor-chain.ts";

/**
 * A call with streams within the interceptors of the caller's side. They may make none, one or
 * several calls of it; whoever leaves it leaves them all.
 */
export class InterceptedStream<I extends DescMessage, O extends DescMessage>
	implements OpenStream<I, O>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #environment: Environment;
	readonly #method: DescMethodStreaming<I, O>;
	readonly #given: CallRequest;
	readonly #scope: CallerScope;
	readonly #input: AsyncIterator<MessageInitShape<I>>;
	/** The calls that interceptors have made and that may be open. */
	readonly #calls = new Set<StreamCall<I, O>>();
	/** Why there is nothing more to do, where the caller has left. */
	#left: ConnectError | undefined;

	constructor(
		environment: Environment,
		interceptors: readonly Interceptor[],
		method: DescMethodStreaming<I, O>,
		given: CallRequest,
		contextValues: ContextValues | undefined,
		input: AsyncIterable<MessageInitShape<I>>,
	) {
		this.#environment = environment;
		this.#method = method;
		this.#given = given;
		this.#scope = new CallerScope(environment.clock, given);
		this.#input = input[Symbol.asyncIterator]();
		this.response = this.#run(interceptors, contextValues);
	}

	leave(): void {
		this.#left = canceledBy("the caller reads no further");
		for (const call of this.#calls) {
			call.leave();
		}
		this.#scope.end(this.#left);
		stopIterator(this.#input, this.#left);
	}

	async #run(
		interceptors: readonly Interceptor[],
		contextValues: ContextValues | undefined,
	): Promise<StreamResponse<I, O>> {
		try {
			const scope = this.#scope;
			const method = this.#method;
			const request: StreamRequest<I, O> = {
				...requestOf(method, this.#given, contextValues),
				get signal() {
					return scope.signal;
				},
				stream: true,
				method,
				message: mapResults({ [Symbol.asyncIterator]: () => this.#input }, (result) =>
					result.done === true
						? result
						: { done: false, value: create(method.input, result.value) },
				),
			};
			const call = chained(interceptors, async (handed) => {
				if (!handed.stream) {
					throw changedKind(method);
				}
				return this.#call(handed, request);
			});
			const response = await call(request);
			if (!response.stream) {
				throw changedKind(method);
			}
			const { service, header, trailer, message } = response;
			const messages = this.#messagesOf(message);
			return { stream: true, service, method, header, trailer, message: messages };
		} catch (thrown) {
			throw this.#fail(thrown);
		}
	}

	/** What is innermost: a call without interceptors. */
	async #call(handed: StreamRequest, original: StreamRequest): Promise<StreamResponse<I, O>> {
		if (this.#left !== undefined) {
			throw this.#left;
		}
		const method = this.#method;
		const request = requestOfHanded(handed, original, this.#given, this.#scope);
		const requests = mapResults(handed.message, (result) => expectIn(result, method.input));
		for (const former of this.#calls) {
			if (!former.isOpen) {
				this.#calls.delete(former);
			}
		}
		const call = callStream(this.#environment, method, request, requests);
		this.#calls.add(call);
		const { message, header, trailer } = await call.response;
		return { stream: true, service: method.parent, method, message, header, trailer };
	}

	/** The messages for the reader: their end is the call's, and an error comes once. */
	#messagesOf(intercepted: AsyncIterable<Message>): AsyncIterable<MessageShape<O>> {
		const messages = mapResults(intercepted, (result) => {
			if (result.done === true) {
				this.#scope.end();
				stopIterator(this.#input);
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
					throw this.#fail(thrown);
				}
			},
			return: async () => {
				await messages.return?.();
				return { done: true, value: undefined };
			},
		};
		return { [Symbol.asyncIterator]: () => iterator };
	}

	#fail(thrown: unknown): ConnectError {
		const error = this.#scope.fail(thrown);
		stopIterator(this.#input, error);
		return error;
	}
}

function expectIn<Desc extends DescMessage>(
	result: IteratorResult<Message, unknown>,
	desc: Desc,
): IteratorResult<MessageShape<Desc>, unknown> {
	return result.done === true ? result : { done: false, value: expectMessage(result.value, desc) };
}
