import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import { callerOf, takerOf } from "../limits/call-gate.ts";
import type { EventLoopTurns } from "../limits/event-loop-turns.ts";
import type { BytePacer } from "./byte-pacer.ts";
import type { FieldLimits, MessageFormat } from "./field-limits.ts";
import type {
	ArrivingRequest,
	IncompleteMessage,
	IncompleteMessages,
} from "./incomplete-messages.ts";
import {
	Envelopes,
	type FramingOptions,
	type MessageFraming,
	WholeBody,
} from "./message-framing.ts";

/** The body of a larger request is metered while it arrives. */
const largeBytes = 64 * 1024;

/** A message of which less has arrived does not count as incomplete: its call uses more memory. */
const leastBytes = 4 * 1024;

/** A request that was refused for its number of fields, before it was decoded. */
export interface RefusedMessage {
	readonly method: DescMethod;
	/** The caller; `undefined` if it is not known. */
	readonly subject: string | undefined;
	readonly error: ConnectError;
}

/** Admits a call, or throws. */
export type RequestGate = (call: HandlerContext) => void | Promise<void>;

/** Options of `RequestMeter`. */
export interface RequestMeterOptions {
	readonly fields: FieldLimits;
	/** The maximum size of a message of the method; Connect refuses larger ones by their length alone. */
	readonly messageBytes: (method: DescMethod) => number;
	/** Whether streams are not metered. */
	readonly unaryOnly?: boolean;
	/** Limits bytes per second; if absent, there is no limit. */
	readonly pacer?: BytePacer;
	readonly turns: EventLoopTurns;
	/** Limits the bytes that were received and are not decoded yet. */
	readonly incomplete: IncompleteMessages;
	readonly onRefused: (refused: RefusedMessage) => void;
}

/** A request whose body is metered. */
export interface MeteredRequest {
	readonly method: DescMethod;
	readonly header: Pick<Headers, "get" | "delete">;
	readonly body: AsyncIterable<Uint8Array>;
	/** Contains the caller when the body is read, which is after the gate has admitted the call. */
	readonly contextValues: ContextValues;
	/** Aborts when the call has ended. */
	readonly signal: AbortSignal;
	/** Counts the bytes that are not decoded yet, and ends the message when the exchange ends. */
	readonly exchange: ArrivingRequest & { incomplete: Pick<IncompleteMessage, "end"> | undefined };
}

/**
 * Meters the bodies of requests on their way to Connect, which decodes them:
 *
 * ```
 * socket ──▶ bytes per second ──▶ messages ──▶ number of fields ──▶ turn on the ──▶ Connect
 *            of the subject:       held if      refused beyond       event loop
 *            read later            large        the limit
 * ```
 *
 * The received part of a message counts for the limit on incomplete messages until the message is decoded. While there
 * is no room for the rest, the body is not read.
 *
 * The request of a unary call or a server stream takes a turn when it is complete, however small it is, because the call
 * that it starts may be long. In a client stream, the messages that have arrived together take one, or several if they
 * are many.
 *
 * Invariant: Connect reads a body only after the request gate has admitted its call, so that nothing is read or scanned
 * for callers without a valid token. It accepts no compressed messages, so that the scanned bytes are the decoded ones.
 */
export class RequestMeter {
	readonly #options: RequestMeterOptions;

	constructor(options: RequestMeterOptions) {
		this.#options = options;
	}

	/** The metered body. Removes `content-length` from the header if Connect would allocate a buffer of that size. */
	bodyOf(request: MeteredRequest): AsyncIterable<Uint8Array> {
		const { method, header, body } = request;
		if (this.#options.unaryOnly === true && method.methodKind !== "unary") {
			return body;
		}
		const { freeBytes } = this.#options.fields.of(method);
		const length = Number(header.get("content-length") ?? Number.NaN);
		if (length <= freeBytes && length <= largeBytes && takesTurn(method)) {
			return { [Symbol.asyncIterator]: () => this.#small(request, length) };
		}
		if (length <= this.#options.messageBytes(method)) {
			header.delete("content-length");
		}
		return {
			[Symbol.asyncIterator]: () => new MeteredBody(this.#options, request, length),
		};
	}

	/**
	 * The size below which a body is read as it arrives, and is metered when it has ended; 0 if it must be read through
	 * `bodyOf`. The bytes of such a body count for no limit but bytes per second.
	 */
	freeBytesOf(method: DescMethod, contextValues: ContextValues): number {
		const { unaryOnly, pacer, fields } = this.#options;
		if (unaryOnly === true && method.methodKind !== "unary") {
			return 0;
		}
		const subject = callerOf(contextValues)?.subject;
		return pacer === undefined || subject === undefined || pacer.isOpen(subject)
			? Math.min(leastBytes, fields.of(method).freeBytes)
			: 0;
	}

	/**
	 * Meters a body below `freeBytesOf` that has ended: calls `proceed` when it is the call's turn on the event loop, which
	 * may be immediately. If it waits, returns a function that cancels the wait.
	 */
	meterFree(
		bytes: number,
		contextValues: ContextValues,
		proceed: () => void,
	): (() => void) | undefined {
		const { pacer, turns } = this.#options;
		const subject = callerOf(contextValues)?.subject;
		if (pacer !== undefined && subject !== undefined) {
			pacer.charge(subject, bytes);
		}
		return turns.continue(takerOf(contextValues), proceed);
	}

	/** A turn on the event loop for a call that continues; `undefined` if it may continue now. */
	turnOf({
		contextValues,
		signal,
	}: Pick<MeteredRequest, "contextValues" | "signal">): Promise<void> | undefined {
		const { turns, unaryOnly } = this.#options;
		return unaryOnly === true ? undefined : turns.take(takerOf(contextValues), signal);
	}

	/** The gate, followed by the limit on fields for a message in the query of a GET. */
	after(enter: RequestGate): RequestGate {
		return (call) => {
			const entered = enter(call);
			if (call.requestMethod !== "GET") {
				return entered;
			}
			return entered instanceof Promise
				? entered.then(() => this.#enterQuery(call))
				: this.#enterQuery(call);
		};
	}

	/** @throws ConnectError ResourceExhausted if the message in the query has too many fields. */
	#enterQuery(call: HandlerContext): Promise<void> | undefined {
		this.#checkQuery(call);
		return this.#options.turns.take(takerOf(call.values), call.signal);
	}

	#checkQuery({ method, url, values }: HandlerContext): void {
		const limit = this.#options.fields.of(method);
		if (url.length <= limit.freeBytes) {
			return;
		}
		const query = new URL(url).searchParams;
		const text = query.get("message") ?? "";
		const message = Buffer.from(text, query.get("base64") === "1" ? "base64" : "utf8");
		if (message.byteLength > limit.freeBytes) {
			const format = query.get("encoding") === "json" ? "json" : "binary";
			const subject = callerOf(values)?.subject;
			refuse(this.#options, method, subject, () => limit.check(message, format));
		}
	}

	/** A body that is within all limits by its length: it is charged immediately, and read without changes. */
	#small(request: MeteredRequest, length: number): AsyncIterator<Uint8Array> {
		const { pacer } = this.#options;
		const subject = callerOf(request.contextValues)?.subject;
		if (pacer !== undefined && subject !== undefined) {
			if (!pacer.isOpen(subject)) {
				return new MeteredBody(this.#options, request, length);
			}
			pacer.charge(subject, length);
		}
		return new SmallBody(this.#options, request, length);
	}
}

/** The body of a small request, which takes a turn when it has ended, because its call starts then. */
class SmallBody implements AsyncIterator<Uint8Array> {
	readonly #options: RequestMeterOptions;
	readonly #request: MeteredRequest;
	readonly #length: number;
	readonly #body: AsyncIterator<Uint8Array>;
	#received = 0;
	#counts = false;
	#hasTurn = false;

	constructor(options: RequestMeterOptions, request: MeteredRequest, length: number) {
		this.#options = options;
		this.#request = request;
		this.#length = length;
		this.#body = request.body[Symbol.asyncIterator]();
	}

	async next(): Promise<IteratorResult<Uint8Array>> {
		const read = await this.#body.next();
		if (read.done !== true) {
			this.#received += read.value.byteLength;
		}
		if (this.#received < this.#length || this.#counts) {
			this.#count(read.done === true);
		}
		if (read.done === true && !this.#hasTurn) {
			this.#hasTurn = true;
			const { contextValues, signal } = this.#request;
			const turn = this.#options.turns.take(takerOf(contextValues), signal);
			if (turn !== undefined) {
				await turn;
			}
		}
		return read;
	}

	/** Counts a body that arrives in parts. */
	#count(hasEnded: boolean): void {
		const { exchange } = this.#request;
		if (hasEnded) {
			exchange.incomplete?.end();
			exchange.incomplete = undefined;
		} else if (!this.#counts && this.#received >= leastBytes) {
			this.#counts = true;
			const message = this.#options.incomplete.begin(exchange);
			exchange.incomplete = message;
			message.update(this.#received, this.#length, this.#length);
		}
	}

	async return(): Promise<IteratorResult<Uint8Array>> {
		await this.#body.return?.();
		return { done: true, value: undefined };
	}
}

/** Not a generator, which would cost each call more than the metering. */
class MeteredBody implements AsyncIterator<Uint8Array> {
	readonly #options: RequestMeterOptions;
	readonly #request: MeteredRequest;
	readonly #body: AsyncIterator<Uint8Array>;
	readonly #subject: string | undefined;
	readonly #framing: MessageFraming;
	/** Whether the bytes that are passed on next complete a message. */
	#takesTurn = false;
	/** The number of complete messages, and the size of the last one. */
	#messages = 0;
	#completeBytes = 0;
	#ready: readonly Uint8Array[] = [];
	/** The complete message of a request that has not ended: its call starts only when the request ends. */
	#held: readonly Uint8Array[] | undefined;
	#next = 0;
	#hasEnded = false;
	/** The message that is not decoded yet, if it arrives in parts. */
	#message: IncompleteMessage | undefined;
	#refusable: AbortSignal | undefined;
	readonly #maxBytes: number;

	/** @param length - the length of the body; NaN if it is not known. */
	constructor(options: RequestMeterOptions, request: MeteredRequest, length: number) {
		const { method, header, body } = request;
		this.#options = options;
		this.#request = request;
		this.#body = body[Symbol.asyncIterator]();
		this.#maxBytes = options.messageBytes(method);
		this.#subject = callerOf(request.contextValues)?.subject;
		const contentType = (header.get("content-type") ?? "").toLowerCase();
		const format: MessageFormat = contentType.includes("json") ? "json" : "binary";
		const limit = options.fields.of(method);
		const framing: FramingOptions = {
			freeBytes: limit.freeBytes,
			maxBytes: this.#maxBytes,
			onHeld: (message) =>
				refuse(options, method, this.#subject, () => limit.check(message, format)),
			onComplete: (size) => {
				if (!takesTurn(method)) {
					this.#message?.complete();
				}
				this.#messages += 1;
				this.#completeBytes = size;
				this.#takesTurn = true;
			},
		};
		this.#framing = isEnveloped(contentType)
			? new Envelopes(framing)
			: new WholeBody(framing, length >= 0 ? length : undefined);
	}

	async next(): Promise<IteratorResult<Uint8Array>> {
		const { turns } = this.#options;
		const { contextValues, method } = this.#request;
		try {
			for (;;) {
				const chunk = this.#ready[this.#next];
				if (chunk !== undefined) {
					this.#next += 1;
					return { done: false, value: chunk };
				}
				if (this.#held === undefined) {
					this.#count();
				}
				if (this.#hasEnded) {
					return { done: true, value: undefined };
				}
				const { rest } = this.#framing;
				const admitted = rest === undefined ? this.#admitted() : undefined;
				if (admitted !== undefined) {
					await admitted;
				}
				const released =
					rest === undefined ? this.#frame(await this.#body.next()) : this.#framing.push(rest);
				if (takesTurn(method) && !this.#hasEnded && this.#messages > 0) {
					this.#checkOne();
					this.#held = [...(this.#held ?? []), ...released];
					this.#countHeld();
					continue;
				}
				this.#ready = this.#held === undefined ? released : [...this.#held, ...released];
				this.#held = undefined;
				this.#next = 0;
				if (this.#takesTurn) {
					this.#takesTurn = false;
					const turn = turns.take(takerOf(contextValues), this.#signal);
					if (turn !== undefined) {
						await turn;
					}
					this.#message?.complete();
				}
			}
		} catch (failure) {
			this.#end();
			throw failure;
		}
	}

	/** Resolves when more may be read for the subject; `undefined` if that is now. */
	#admitted(): Promise<void> | undefined {
		const { pacer } = this.#options;
		return this.#subject === undefined ? undefined : pacer?.admit(this.#subject, this.#signal);
	}

	/** Charges for what was read, and passes it to the framing. */
	#frame(read: IteratorResult<Uint8Array>): readonly Uint8Array[] {
		if (read.done === true) {
			this.#hasEnded = true;
			return this.#framing.end();
		}
		if (this.#subject !== undefined) {
			this.#options.pacer?.charge(this.#subject, read.value.byteLength);
		}
		return this.#framing.push(read.value);
	}

	/** Counts the received part of a message, once all bytes before it were passed on. */
	#count(): void {
		if (this.#message !== undefined && (this.#message.isComplete || this.#hasEnded)) {
			this.#end();
		}
		const { received } = this.#framing;
		if (received < leastBytes || this.#hasEnded) {
			return;
		}
		(this.#message ?? this.#begin()).update(received, this.#framing.expected, this.#maxBytes);
	}

	/** Aborts when the call has ended or, while a message counts, when its request is refused. */
	get #signal(): AbortSignal {
		const { exchange, signal } = this.#request;
		if (this.#message === undefined) {
			return signal;
		}
		this.#refusable ??= AbortSignal.any([signal, exchange.body.failed]);
		return this.#refusable;
	}

	/** @throws ConnectError Unimplemented if there is more than one message. */
	#checkOne(): void {
		if (this.#messages > 1 || this.#framing.received > 0) {
			throw new ConnectError(
				"the request has more than one message: the method accepts one",
				Code.Unimplemented,
			);
		}
	}

	/** Counts a complete message, which is held until its request ends. */
	#countHeld(): void {
		const bytes = this.#completeBytes;
		if (this.#message === undefined && bytes >= leastBytes) {
			this.#begin().update(bytes, bytes, this.#maxBytes);
		}
	}

	#begin(): IncompleteMessage {
		const { exchange } = this.#request;
		this.#message = this.#options.incomplete.begin(exchange);
		exchange.incomplete = this.#message;
		return this.#message;
	}

	#end(): void {
		if (this.#message !== undefined) {
			this.#message.end();
			this.#message = undefined;
			this.#request.exchange.incomplete = undefined;
		}
	}

	async return(): Promise<IteratorResult<Uint8Array>> {
		this.#ready = [];
		this.#held = undefined;
		this.#hasEnded = true;
		this.#end();
		await this.#body.return?.();
		return { done: true, value: undefined };
	}
}

/** Whether every request takes a turn, and not only large ones. */
function takesTurn({ methodKind }: DescMethod): boolean {
	return methodKind === "unary" || methodKind === "server_streaming";
}

function isEnveloped(contentType: string): boolean {
	return (
		contentType.startsWith("application/grpc") || contentType.startsWith("application/connect+")
	);
}

function refuse(
	{ onRefused }: RequestMeterOptions,
	method: DescMethod,
	subject: string | undefined,
	check: () => void,
): void {
	try {
		check();
	} catch (error) {
		if (error instanceof ConnectError) {
			onRefused({ method, subject, error });
		}
		throw error;
	}
}
