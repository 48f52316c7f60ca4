import type { DescMessage } from "@bufbuild/protobuf";
import type { StreamResponse, Transport } from "@connectrpc/connect";

/**
 * A transport that counts its calls. A call ends with its response, or with its error. A stream ends with its last message,
 * with an error, when its signal aborts, though nobody may read it, or when the `return` of its iterator is called. A client
 * of Connect never calls that: a reader that leaves its `for await` early has to abort the signal.
 */
export class CountedTransport implements Transport {
	readonly #transport: Transport;
	#running = 0;

	constructor(transport: Transport) {
		this.#transport = transport;
	}

	/** Whether no call is running. */
	get isIdle(): boolean {
		return this.#running === 0;
	}

	readonly unary: Transport["unary"] = async (...call) => {
		this.#running += 1;
		try {
			return await this.#transport.unary(...call);
		} finally {
			this.#running -= 1;
		}
	};

	readonly stream: Transport["stream"] = async (method, signal, ...call) => {
		const end = this.#begin(signal);
		try {
			return observedUntil(await this.#transport.stream(method, signal, ...call), end);
		} catch (failure) {
			end();
			throw failure;
		}
	};

	/** Counts a stream. The returned function ends it, once. */
	#begin(signal: AbortSignal | undefined): () => void {
		let hasEnded = false;
		const end = () => {
			if (!hasEnded) {
				hasEnded = true;
				this.#running -= 1;
				signal?.removeEventListener("abort", end);
			}
		};
		this.#running += 1;
		signal?.addEventListener("abort", end);
		return end;
	}
}

/** The response, which calls `end` when its messages have ended. Its headers may be made on first access. */
function observedUntil<I extends DescMessage, O extends DescMessage>(
	response: StreamResponse<I, O>,
	end: () => void,
): StreamResponse<I, O> {
	return {
		stream: true,
		service: response.service,
		method: response.method,
		message: messagesUntil(response.message, end),
		get header() {
			return response.header;
		},
		get trailer() {
			return response.trailer;
		},
	};
}

function messagesUntil<T>(messages: AsyncIterable<T>, end: () => void): AsyncIterable<T> {
	return {
		[Symbol.asyncIterator]() {
			const iterator = messages[Symbol.asyncIterator]();
			return {
				async next() {
					try {
						const result = await iterator.next();
						if (result.done === true) {
							end();
						}
						return result;
					} catch (failure) {
						end();
						throw failure;
					}
				},
				async return(value) {
					end();
					return iterator.return?.(value) ?? { done: true, value };
				},
			};
		},
	};
}
