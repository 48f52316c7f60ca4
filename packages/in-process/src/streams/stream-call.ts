import {
	create,
	type DescMessage,
	type DescMethodStreaming,
	isMessage,
	type MessageInitShape,
	type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type StreamResponse } from "@connectrpc/connect";
import { Call, type CallEnds, type CallRequest, type Environment } from "../call/call.ts";
import { type Answer, openStream } from "../call/handlers.ts";
import { copyOfHeaders } from "../call/header-copies.ts";
import { StreamResult } from "../call/responses.ts";
import type { Route } from "../call/route-table.ts";
import { asWireError, callerGone, canceledBy } from "../call/wire-errors.ts";
import type { OpenStream } from "./open-stream.ts";
import { PulledStream } from "./pulled-stream.ts";
import { stopIterator } from "./stop-iterator.ts";

/**
 * A stream of messages to the handler, a stream of them back; either may be of one message. Throws
 * where there is no such method.
 */
export function callStream<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	method: DescMethodStreaming<I, O>,
	request: CallRequest,
	input: AsyncIterable<MessageInitShape<I>>,
): StreamCall<I, O> {
	const iterator = input[Symbol.asyncIterator]();
	let route: Route;
	try {
		route = environment.routes.find(method);
	} catch (error) {
		stopIterator(iterator, error);
		throw error;
	}
	return new StreamCall(environment, method, route, request, iterator);
}

/**
 * A call with streams, both ends of it.
 *
 *        caller                                            handler
 *   input iterator ◀──pull── requests: PulledStream ◀──next()── implementation's argument
 *   reader ──next()──▶ responses: PulledStream ──pull──▶ outputs, the implementation's iterator
 *
 * The first response is pulled when the call is made, because only then the response headers are
 * known; each further one when the reader asks for it. Requests are pulled when the handler asks.
 *
 * When the handler's stream ends, its signal aborts, then the end travels to the reader, and when
 * it has arrived the call is closed and the input is stopped. When the call is broken off, both
 * pulled streams end with the error at once, and each side's iterator is stopped on its own side.
 */
export class StreamCall<I extends DescMessage, O extends DescMessage>
	implements CallEnds, OpenStream<I, O>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #method: DescMethodStreaming<I, O>;
	readonly #route: Route;
	readonly #timeoutMs: number | undefined;
	readonly #input: AsyncIterator<MessageInitShape<I>>;
	readonly #requests: PulledStream<MessageInitShape<I>, MessageShape<I>>;
	readonly #responses: PulledStream<Answer, MessageShape<O>>;
	readonly #failResponse: (error: ConnectError) => void;
	readonly #call: Call;
	/** The implementation's own iterator, once it has given one. */
	#outputs: AsyncIterator<Answer, unknown> | undefined;
	#result: StreamResult<I, O> | undefined;
	/** What the handler had set for trailers when its stream ended. */
	#trailer: Headers | undefined;

	constructor(
		environment: Environment,
		method: DescMethodStreaming<I, O>,
		route: Route,
		request: CallRequest,
		input: AsyncIterator<MessageInitShape<I>>,
	) {
		const { hops } = environment;
		this.#method = method;
		this.#route = route;
		this.#timeoutMs = request.timeoutMs;
		this.#input = input;
		this.#requests = new PulledStream(this.#requestSides(), hops);
		this.#responses = new PulledStream(this.#responseSides(), hops);
		const { promise, resolve, reject } = Promise.withResolvers<StreamResponse<I, O>>();
		this.response = promise;
		this.#failResponse = reject;
		this.#call = new Call(environment, route, request, this);
		if (this.#call.isOpen) {
			hops.ask(() => void this.#responses.prime().then(() => resolve(this.#begin())));
		}
	}

	get isOpen(): boolean {
		return this.#call.isOpen;
	}

	leave(): void {
		void this.#responses.return();
	}

	failCaller(error: ConnectError): void {
		this.#failResponse(error);
		this.#responses.end(error);
		this.#requests.cutOff();
		stopIterator(this.#input, error);
	}

	releaseHandler(reason: ConnectError): void {
		this.#requests.end(reason);
		if (this.#outputs !== undefined) {
			stopIterator(this.#outputs, reason);
		}
	}

	#begin(): StreamResult<I, O> {
		const header = copyOfHeaders(this.#call.context.touchedHeader);
		const trailer = this.#call.isOpen ? undefined : this.#trailer;
		this.#result = new StreamResult(this.#method, this.#responses, header, trailer);
		return this.#result;
	}

	#requestSides() {
		const desc = this.#method.input;
		return {
			pull: () => this.#input.next(),
			convert: (init: MessageInitShape<I>) => create(desc, init),
			exhausted: () => {},
			failed: (thrown: unknown) => {
				this.#call.cancel(ConnectError.from(thrown, Code.Internal));
				return callerGone();
			},
			arrived: () => {},
			abandoned: () => stopIterator(this.#input),
		};
	}

	#responseSides() {
		return {
			pull: () => this.#outputs?.next() ?? this.#open(),
			convert: (answer: Answer) => this.#convert(answer),
			exhausted: () => {
				this.#finishHandler();
				this.#trailer = copyOfHeaders(this.#call.context.touchedTrailer);
			},
			failed: (thrown: unknown) => {
				this.#finishHandler(thrown);
				return asWireError(thrown, this.#call.context);
			},
			arrived: (error?: unknown) => {
				this.#call.close();
				stopIterator(this.#input, error);
				if (error === undefined && this.#trailer !== undefined) {
					this.#result?.fillTrailer(this.#trailer);
				}
			},
			abandoned: () => this.#call.cancel(canceledBy("the caller reads no further")),
		};
	}

	async #open(): Promise<IteratorResult<Answer, unknown>> {
		const outputs = await openStream(
			this.#route,
			this.#call.context,
			this.#requests,
			this.#timeoutMs,
		);
		this.#outputs = outputs[Symbol.asyncIterator]();
		if (!this.#call.isOpen) {
			stopIterator(this.#outputs, this.#call.context.signal.reason);
		}
		return this.#outputs.next();
	}

	#convert(answer: Answer): MessageShape<O> {
		const { output } = this.#method;
		const message = isMessage(answer, output)
			? answer
			: create(this.#route.spec.method.output, answer);
		if (!isMessage(message, output)) {
			throw new ConnectError(
				`expected ${output.typeName}, not ${message.$typeName}`,
				Code.Internal,
			);
		}
		return message;
	}

	/** The implementation is over: its stream has ended, threw, or holds what is not a message. */
	#finishHandler(thrown?: unknown): void {
		this.#call.context.abort(thrown);
		if (!this.#requests.hasEnded) {
			this.#requests.end(callerGone());
		}
		if (thrown !== undefined && this.#outputs !== undefined) {
			stopIterator(this.#outputs);
		}
	}
}
