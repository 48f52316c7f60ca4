import {
	create,
	type DescMessage,
	type DescMethodServerStreaming,
	isMessage,
	type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type StreamResponse } from "@connectrpc/connect";
import {
	type CallRequest,
	CallResponse,
	canceledByReader,
	copyOfHeaders,
	type OpenCall,
} from "@plinth/transport";
import { Call, type CallEnds, type Environment } from "../call/call.ts";
import { openStream, type Response } from "../call/handlers.ts";
import type { Route } from "../call/route-table.ts";
import { asWireError } from "../call/wire-errors.ts";
import { PulledStream } from "./pulled-stream.ts";
import { stopIterator } from "./stop-iterator.ts";

/**
 * Sends one message to the handler, which returns a stream of messages.
 *
 * @throws ConnectError Unimplemented if the method is not registered.
 */
export function callStream<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	method: DescMethodServerStreaming<I, O>,
	request: CallRequest,
	message: MessageShape<I>,
): StreamCall<I, O> {
	return new StreamCall(environment, method, environment.routes.find(method), request, message);
}

/**
 * Both ends of a server-streaming call.
 *
 *        caller                                       handler
 *   reader ──next()──▶ responses: PulledStream ──pull──▶ outputs, the implementation's iterator
 *
 * The first response is pulled when the call is made, because the response headers are not known
 * before; each further one when the reader asks for it.
 *
 * When the handler's stream ends, its signal aborts, then the end travels to the reader, and on its
 * arrival the call is closed. When the call is broken off, the stream ends with the error at once,
 * and the handler's iterator is stopped on the handler's side.
 */
export class StreamCall<I extends DescMessage, O extends DescMessage>
	implements CallEnds, OpenCall<I, O>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #method: DescMethodServerStreaming<I, O>;
	readonly #route: Route;
	readonly #timeoutMs: number | undefined;
	readonly #message: MessageShape<I>;
	readonly #responses: PulledStream<Response, MessageShape<O>>;
	readonly #failResponse: (error: ConnectError) => void;
	readonly #call: Call;
	/** The implementation's iterator, once it has returned one. */
	#outputs: AsyncIterator<Response, unknown> | undefined;
	#result:
		| CallResponse<true, DescMethodServerStreaming<I, O>, AsyncIterable<MessageShape<O>>>
		| undefined;
	/** The trailers that the handler had set when its stream ended. */
	#trailer: Headers | undefined;

	constructor(
		environment: Environment,
		method: DescMethodServerStreaming<I, O>,
		route: Route,
		request: CallRequest,
		message: MessageShape<I>,
	) {
		const { hops } = environment;
		this.#method = method;
		this.#route = route;
		this.#timeoutMs = request.timeoutMs;
		this.#message = message;
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

	cancel(): void {
		void this.#responses.return();
	}

	failCaller(error: ConnectError): void {
		this.#failResponse(error);
		this.#responses.end(error);
	}

	releaseHandler(reason: ConnectError): void {
		if (this.#outputs !== undefined) {
			stopIterator(this.#outputs, reason);
		}
	}

	#begin(): StreamResponse<I, O> {
		const header = copyOfHeaders(this.#call.context.touchedHeader);
		const trailer = this.#call.isOpen ? undefined : this.#trailer;
		this.#result = new CallResponse(true, this.#method, this.#responses, header, trailer);
		return this.#result;
	}

	#responseSides() {
		return {
			pull: () => this.#outputs?.next() ?? this.#open(),
			convert: (response: Response) => this.#convert(response),
			exhausted: () => {
				this.#call.context.abort();
				this.#trailer = copyOfHeaders(this.#call.context.touchedTrailer);
			},
			failed: (thrown: unknown) => {
				this.#call.context.abort(thrown);
				if (thrown !== undefined && this.#outputs !== undefined) {
					stopIterator(this.#outputs);
				}
				return asWireError(thrown, this.#call.context);
			},
			arrived: (error?: unknown) => {
				this.#call.close();
				if (error === undefined && this.#trailer !== undefined) {
					this.#result?.fillTrailer(this.#trailer);
				}
			},
			abandoned: () => this.#call.cancel(canceledByReader()),
		};
	}

	async #open(): Promise<IteratorResult<Response, unknown>> {
		const outputs = await openStream(
			this.#route,
			this.#call.context,
			this.#message,
			this.#timeoutMs,
		);
		this.#outputs = outputs[Symbol.asyncIterator]();
		if (!this.#call.isOpen) {
			stopIterator(this.#outputs, this.#call.context.signal.reason);
		}
		return this.#outputs.next();
	}

	#convert(response: Response): MessageShape<O> {
		const { output } = this.#method;
		const message = isMessage(response, output)
			? response
			: create(this.#route.spec.method.output, response);
		if (!isMessage(message, output)) {
			throw new ConnectError(
				`expected ${output.typeName}, not ${message.$typeName}`,
				Code.Internal,
			);
		}
		return message;
	}
}
