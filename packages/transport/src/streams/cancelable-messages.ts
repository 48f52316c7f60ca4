import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { CallOptions, StreamResponse } from "@connectrpc/connect";
import type { OpenStream } from "./open-stream.ts";

type Result<T> = IteratorResult<T, undefined>;

/** Shared by all streams, so frozen. */
const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** The result of opening a stream. */
type Opened<T> =
	| { readonly kind: "messages"; readonly messages: AsyncIterator<T> }
	| { readonly kind: "failed"; readonly error: unknown }
	| { readonly kind: "left" };

/**
 * The messages of a stream for the caller of a client. Like a generator, it can be read once.
 *
 * ```
 *   opening ──response──▶ reading ──end, error──▶ over
 *      └───────error, return()───────return()─────▲
 * ```
 *
 * While the stream is read, `next()` is that of the transport's stream: nothing is allocated per message.
 */
export class CancelableMessages<I extends DescMessage, O extends DescMessage>
	implements AsyncIterableIterator<MessageShape<O>, undefined>
{
	readonly #stream: OpenStream<I, O>;
	readonly #onHeader: CallOptions["onHeader"];
	#onTrailer: CallOptions["onTrailer"];
	/** Settled by the response or by `return`, whichever comes first; created for the first reader. */
	#opening: PromiseWithResolvers<Opened<MessageShape<O>>> | undefined;
	/** The messages of the response, once it has begun. */
	#messages: AsyncIterator<MessageShape<O>> | undefined;
	#isOver = false;

	constructor(stream: OpenStream<I, O>, options: CallOptions | undefined) {
		this.#stream = stream;
		this.#onHeader = options?.onHeader;
		this.#onTrailer = options?.onTrailer;
		// A reader receives the error; without a reader it must not be an unhandled rejection.
		stream.response.catch(() => {});
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	next(): Promise<Result<MessageShape<O>>> {
		if (this.#isOver) {
			return Promise.resolve(done);
		}
		if (this.#messages !== undefined) {
			return this.#messages.next();
		}
		if (this.#opening === undefined) {
			this.#opening = Promise.withResolvers();
			void this.#open(this.#opening);
		}
		return this.#opening.promise.then(this.#read);
	}

	/** Cancels the stream: pending reads receive the end, and the handler's signal aborts. */
	async return(): Promise<Result<MessageShape<O>>> {
		if (!this.#isOver) {
			this.#isOver = true;
			this.#stream.cancel();
			this.#opening?.resolve({ kind: "left" });
			// Interceptors may have wrapped the stream in their own.
			await this.#messages?.return?.();
		}
		return done;
	}

	/** Never rejects: an error is passed to the first reader. */
	async #open({ resolve }: PromiseWithResolvers<Opened<MessageShape<O>>>): Promise<void> {
		try {
			const response = await this.#stream.response;
			if (!this.#isOver) {
				this.#onHeader?.(response.header);
				resolve({ kind: "messages", messages: this.#messagesOf(response) });
			}
		} catch (error) {
			this.#stream.cancel();
			resolve({ kind: "failed", error });
		}
	}

	readonly #read = (opened: Opened<MessageShape<O>>): Promise<Result<MessageShape<O>>> => {
		if (opened.kind === "messages") {
			this.#messages = opened.messages;
		} else if (opened.kind === "failed" && !this.#isOver) {
			this.#isOver = true;
			return Promise.reject(opened.error);
		}
		return this.next();
	};

	#messagesOf(response: StreamResponse<I, O>): AsyncIterator<MessageShape<O>> {
		const messages = response.message[Symbol.asyncIterator]();
		if (this.#onTrailer === undefined) {
			return messages;
		}
		const see = (result: IteratorResult<MessageShape<O>, unknown>) => {
			if (result.done === true && !this.#isOver) {
				this.#isOver = true;
				this.#onTrailer?.(response.trailer);
			}
			return result;
		};
		return {
			next: () => messages.next().then(see),
			return: () => messages.return?.() ?? Promise.resolve(done),
		};
	}
}
