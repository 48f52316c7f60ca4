import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { BodySink, Carrier, HeaderFields } from "@plinth/rpc-server";
import type { RequestMeter } from "../decoding/request-meter.ts";
import { type Exchange, pieceBytes } from "./exchange.ts";
import type { HttpRequest, HttpResponse } from "./request-handler.ts";

/** Options of `ExchangeCarrier`. */
export interface ExchangeCarrierOptions {
	readonly head: HttpRequest;
	readonly method: DescMethod;
	readonly exchange: Exchange;
	readonly response: HttpResponse;
	/** Meters the body of the request. */
	readonly meter: Pick<RequestMeter, "bodyOf" | "turnOf" | "freeBytesOf" | "meterFree"> | undefined;
	/**
	 * Called when a response is complete of which nothing was sent. If it returns true, it has passed the request to another
	 * handler, and the response is dropped.
	 */
	readonly passOn?: () => boolean;
}

/** Connects a call to its request and response. The exchange counts the bytes of the response. */
export class ExchangeCarrier implements Carrier {
	readonly head: HttpRequest;
	readonly values: ContextValues;
	onClose: ((reason: ConnectError) => void) | undefined;
	readonly #options: ExchangeCarrierOptions;
	#sink: BodySink | undefined;
	/** The chunks of a small body that were passed on. */
	#chunks: Uint8Array[] = [];
	#received = 0;
	#freeBytes = 0;
	#head: { readonly status: number; readonly headers: HeaderFields } | undefined;
	#hasHead = false;
	/** Cancels the wait for a turn of the call. */
	#leave: (() => void) | undefined;

	constructor(options: ExchangeCarrierOptions) {
		this.head = options.head;
		this.values = options.exchange.contextValues();
		this.#options = options;
		options.exchange.carrier = this;
	}

	/** The exchange was closed before the call had ended. */
	clientIsGone(reason: ConnectError): void {
		const leave = this.#leave;
		this.#leave = undefined;
		this.onClose?.(reason);
		if (leave !== undefined) {
			leave();
			this.#sink?.fail(reason);
		}
	}

	read(sink: BodySink): void {
		const { meter, method } = this.#options;
		this.#sink = sink;
		this.#freeBytes =
			meter === undefined ? Number.POSITIVE_INFINITY : meter.freeBytesOf(method, this.values);
		this.#readSmall();
	}

	/** Passes on what has arrived, without promises, as long as the body is small. */
	readonly #readSmall = (): void => {
		const sink = this.#sink;
		const { body } = this.#options.exchange;
		if (sink === undefined) {
			return;
		}
		try {
			for (;;) {
				if (this.#received >= this.#freeBytes) {
					void this.#readMetered(sink);
					return;
				}
				const chunk = body.take();
				if (chunk === undefined) {
					body.wait(this.#readSmall);
					return;
				}
				if (chunk === "end") {
					this.#end(sink);
					return;
				}
				this.#received += chunk.byteLength;
				this.#chunks.push(chunk);
				if (this.#received < this.#freeBytes && !sink.data(chunk)) {
					return;
				}
			}
		} catch (failure) {
			sink.fail(failure);
		}
	};

	#end(sink: BodySink): void {
		const { meter } = this.#options;
		this.#chunks = [];
		if (meter === undefined) {
			sink.end();
			return;
		}
		this.#leave = meter.meterFree(this.#received, this.values, () => {
			this.#leave = undefined;
			sink.end();
		});
	}

	/** Reads a body that is not small through the meter, which sees it from its beginning. */
	async #readMetered(sink: BodySink): Promise<void> {
		const { meter, method, exchange } = this.#options;
		const passed =
			this.#chunks.length === 0 ? 0 : this.#received - (this.#chunks.at(-1)?.byteLength ?? 0);
		try {
			const body = resumed(this.#chunks, exchange.body);
			const metered = meter?.bodyOf({
				...{ method, body, exchange },
				header: { get: (name) => this.head.header(name) ?? null, delete: () => {} },
				contextValues: this.values,
				signal: exchange.signal,
			});
			let seen = 0;
			for await (const chunk of metered ?? body) {
				const known = Math.max(0, Math.min(chunk.byteLength, passed - seen));
				seen += chunk.byteLength;
				if (known < chunk.byteLength && !sink.data(chunk.subarray(known))) {
					return;
				}
			}
		} catch (failure) {
			sink.fail(failure);
			return;
		}
		sink.end();
	}

	respond(status: number, headers: HeaderFields): void {
		this.#head ??= { status, headers };
	}

	/** Sends the head, if it was not sent. */
	#sendHead(mayHaveTrailers: boolean): void {
		const { response, exchange } = this.#options;
		const head = this.#head;
		if (head === undefined || this.#hasHead || exchange.isClosed) {
			return;
		}
		response.writeHead(head.status, head.headers, mayHaveTrailers);
		// Not before: a head that can't be sent must not become one without headers.
		this.#hasHead = true;
	}

	write(data: Uint8Array): Promise<void> | undefined {
		const { exchange, meter } = this.#options;
		this.#sendHead(true);
		return exchange
			.write(data)
			?.then(() => meter?.turnOf({ contextValues: this.values, signal: exchange.signal }));
	}

	end(data: Uint8Array | undefined, trailers: HeaderFields | undefined): void {
		const { exchange, passOn } = this.#options;
		if (exchange.isClosed) {
			exchange.settled();
		} else if (!this.#hasHead && passOn?.() === true) {
			this.#head = undefined;
		} else if (data === undefined || data.byteLength <= pieceBytes) {
			this.#finish(data, trailers);
		} else {
			this.#writeLast(data, trailers);
		}
	}

	#writeLast(data: Uint8Array, trailers: HeaderFields | undefined): void {
		const finish = () => this.#finish(undefined, trailers);
		this.#sendHead(trailers !== undefined);
		try {
			const written = this.#options.exchange.write(data);
			if (written === undefined) {
				finish();
			} else {
				// Trailers that can't be sent end the exchange as well.
				written.then(finish).catch(() => this.cancel());
			}
		} catch {
			// The exchange was ended because too many bytes are unread, or because its trailers can't be sent.
			this.cancel();
		}
	}

	#finish(data: Uint8Array | undefined, trailers: HeaderFields | undefined): void {
		const { exchange, response } = this.#options;
		this.#sendHead(trailers !== undefined);
		if (trailers !== undefined && !exchange.isClosed) {
			response.addTrailers(trailers);
		}
		exchange.end(data);
		exchange.settled();
	}

	cancel(): void {
		const { exchange } = this.#options;
		exchange.destroy();
		exchange.settled();
	}
}

/** A body of which some chunks were read already. */
async function* resumed(
	chunks: readonly Uint8Array[],
	rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined> {
	yield* chunks;
	yield* rest;
}
