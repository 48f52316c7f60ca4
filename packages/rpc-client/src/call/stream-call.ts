import type { DescMessage, DescMethodStreaming, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type StreamResponse } from "@connectrpc/connect";
import type { Fields, Http2ClientStream } from "@plinth/http2";
import {
	type CallRequest,
	CallResponse,
	canceledByReader,
	type OpenCall,
	type RequestMessages,
} from "@plinth/transport";
import { decodeMessage, incompleteMessage } from "../framing/decode-message.ts";
import { encodeMessage } from "../framing/encode-message.ts";
import { MessageReader } from "../framing/message-reader.ts";
import type { CallEnvironment } from "./call-environment.ts";
import { sendMessages } from "./send-messages.ts";
import { type CallReader, WireCall } from "./wire-call.ts";
import { toHeaders } from "./wire-headers.ts";

type Result<T> = IteratorResult<T, undefined>;

/** Frozen, because all streams share it. */
const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** How the stream ends, after the messages that have arrived. */
type End = { readonly error: ConnectError | undefined };

/**
 * A streaming call, and the messages of its response.
 *
 * ```
 *   stream ──chunk──▶ MessageReader ──bytes──▶ next() decodes one message
 *      ◀──pause, if more are buffered───┘           │
 *      ◀──resume, if none is buffered───────────────┘
 * ```
 *
 * So at most a window of HTTP/2 is read ahead: a slow reader slows the server down.
 * Overlapping calls of `next()` are queued. As with a generator, an error is thrown once, and then the stream
 * has ended. If the server fails the call, the messages that have arrived are read first; if this side ends
 * it, they are dropped.
 */
export class StreamCall<I extends DescMessage, O extends DescMessage>
	implements OpenCall<I, O>, CallReader, AsyncIterableIterator<MessageShape<O>, undefined>
{
	readonly response: Promise<StreamResponse<I, O>>;
	readonly #environment: CallEnvironment;
	readonly #method: DescMethodStreaming<I, O>;
	readonly #call: WireCall;
	readonly #bytes: MessageReader;
	readonly #begin: (response: StreamResponse<I, O>) => void;
	readonly #failResponse: (error: ConnectError) => void;
	#result: CallResponse<true, DescMethodStreaming<I, O>, this> | undefined;
	#end: End | undefined;
	#isPaused = false;
	/** The `next()` that waits for a message. */
	#resolve:
		| ((result: Result<MessageShape<O>> | Promise<Result<MessageShape<O>>>) => void)
		| undefined;
	#waiting: Promise<Result<MessageShape<O>>> | undefined;
	/** The promise of the last `next()`, until it has settled. */
	#last: Promise<Result<MessageShape<O>>> | undefined;

	/** Makes the call. */
	constructor(
		environment: CallEnvironment,
		method: DescMethodStreaming<I, O>,
		request: CallRequest,
		messages: RequestMessages<I>,
	) {
		this.#environment = environment;
		this.#method = method;
		this.#bytes = new MessageReader(environment.messages.readMaxBytes);
		const { promise, resolve, reject } = Promise.withResolvers<StreamResponse<I, O>>();
		this.response = promise;
		this.#begin = resolve;
		this.#failResponse = reject;
		this.#call = new WireCall(environment, method, request, this);
		this.#call.start(this.#sender(messages));
	}

	get isOpen(): boolean {
		return this.#call.isOpen;
	}

	cancel(): void {
		void this.return();
	}

	begun(header: Fields): void {
		this.#result = new CallResponse(
			true as const,
			this.#method,
			this,
			() => toHeaders(header),
			undefined,
		);
		this.#begin(this.#result);
	}

	received(chunk: Buffer): void {
		if (this.#resolve === undefined) {
			this.#bytes.keep(chunk);
		} else {
			const bytes = this.#bytes.receive(chunk);
			if (bytes === undefined) {
				return;
			}
			const value = this.#decode(bytes);
			this.#stopWaiting()?.({ done: false, value });
		}
		if (this.#bytes.hasRest && !this.#isPaused) {
			this.#isPaused = true;
			this.#call.pause();
		}
	}

	completed(trailer: Fields): void {
		this.#result?.fillTrailer(() => toHeaders(trailer));
		this.#ended({ error: undefined });
	}

	failed(error: ConnectError, isLocal: boolean): void {
		this.#failResponse(error);
		if (isLocal) {
			this.#bytes.clear();
		}
		this.#ended({ error });
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	next(): Promise<Result<MessageShape<O>>> {
		const last = this.#last;
		if (last === undefined) {
			return this.#take();
		}
		const next = last.then(this.#take, this.#take);
		this.#last = next;
		const clear = () => {
			if (this.#last === next) {
				this.#last = undefined;
			}
		};
		next.then(clear, clear);
		return next;
	}

	/** Cancels the call: pending reads receive the end. */
	return(): Promise<Result<MessageShape<O>>> {
		this.#call.leave();
		// Interceptors may still wait for the response.
		this.#failResponse(canceledByReader());
		this.#bytes.clear();
		this.#end = { error: undefined };
		this.#settleWithEnd(this.#end);
		return Promise.resolve(done);
	}

	#sender(messages: RequestMessages<I>): (stream: Http2ClientStream) => void {
		const { writeMaxBytes, binary } = this.#environment.messages;
		const { input } = this.#method;
		const encode = (message: MessageShape<I>) =>
			encodeMessage(input, message, writeMaxBytes, binary);
		if (messages.kind === "one") {
			const body = encode(messages.message);
			return (stream) => {
				stream.end(body);
			};
		}
		return (stream) => void sendMessages(stream, messages.messages, encode, this.#call);
	}

	/** Must not be called while a `next()` is waiting. */
	readonly #take = (): Promise<Result<MessageShape<O>>> => {
		try {
			const message = this.#decodeNext();
			if (message !== undefined) {
				return Promise.resolve({ done: false, value: message });
			}
		} catch (thrown) {
			// This ends the stream, even if the server has completed the call since.
			const error = ConnectError.from(thrown, Code.Internal);
			this.#call.fail(error);
			this.#bytes.clear();
			this.#end = { error };
		}
		if (this.#end !== undefined) {
			return this.#takeEnd(this.#end);
		}
		if (this.#isPaused) {
			this.#isPaused = false;
			this.#call.resume();
		}
		const waiting = new Promise<Result<MessageShape<O>>>(this.#wait);
		this.#waiting = waiting;
		this.#last ??= waiting;
		return waiting;
	};

	// Created once per stream, not once per message.
	readonly #wait = (
		resolve: (result: Result<MessageShape<O>> | Promise<Result<MessageShape<O>>>) => void,
	): void => {
		this.#resolve = resolve;
	};

	#decodeNext(): MessageShape<O> | undefined {
		const bytes = this.#bytes.next();
		return bytes && this.#decode(bytes);
	}

	#decode(bytes: Uint8Array): MessageShape<O> {
		return decodeMessage(this.#method.output, bytes, this.#environment.messages.binary);
	}

	#takeEnd({ error }: End): Promise<Result<MessageShape<O>>> {
		this.#end = { error: undefined };
		const reason = error ?? (this.#bytes.hasRest ? incompleteMessage() : undefined);
		this.#bytes.clear();
		return reason === undefined ? Promise.resolve(done) : Promise.reject(reason);
	}

	#ended(end: End): void {
		this.#end = end;
		this.#settleWithEnd(end);
	}

	#settleWithEnd(end: End): void {
		const resolve = this.#stopWaiting();
		if (resolve !== undefined) {
			// The promise of `takeEnd` may be rejected; then the waiting one is too.
			resolve(this.#takeEnd(end));
		}
	}

	/** Returns the function that settles the waiting `next()`, if there is one. */
	#stopWaiting() {
		const resolve = this.#resolve;
		this.#resolve = undefined;
		if (this.#last === this.#waiting) {
			this.#last = undefined;
		}
		this.#waiting = undefined;
		return resolve;
	}
}
