import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { ListEntry } from "@plinth/runtime";
import type { BodySink, Carrier } from "../carrier.ts";
import { CallContext } from "../context/call-context.ts";
import type { Codec } from "../messages/codec.ts";
import { EnvelopeReader, type RequestReader, WholeBodyReader } from "../messages/request-reader.ts";
import { type ObservedCall, observe } from "../observers.ts";
import type { PlannedCall } from "../plan.ts";
import { codecOf, type Response } from "../protocols/protocol.ts";
import type { CallEnvironment } from "./environment.ts";
import type { RunningCall } from "./running-calls.ts";
import type { ServedCall } from "./served-call.ts";

/**
 * One call, from its head to the end of its response:
 *
 * ```
 * gate ──▶ body ──▶ message ──▶ implementation ──▶ response
 *   └───────┴─────────┴──────────────┴──▶ error, as the protocol sends it
 * ```
 *
 * Invariants: the response ends exactly once, by `#over`. Anything that an implementation returns after that is
 * dropped. Once the response has ended, the signal of the context has aborted.
 */
export class Call implements BodySink, Response, RunningCall, ServedCall {
	readonly plan: PlannedCall;
	readonly carrier: Carrier;
	readonly context: CallContext;
	readonly codec: Codec;
	readonly environment: CallEnvironment;
	#reader: RequestReader | undefined;
	#observed: ObservedCall | undefined;
	/** Its place among the running calls. */
	#running: ListEntry<RunningCall> | undefined;
	#isOver = false;
	/** Why the client is gone. */
	#closed: ConnectError | undefined;
	onClosed: ((reason: ConnectError) => void) | undefined;

	constructor(plan: PlannedCall, carrier: Carrier, environment: CallEnvironment) {
		const { route, protocol, timeoutMs } = plan;
		this.plan = plan;
		this.carrier = carrier;
		this.environment = environment;
		this.codec = codecOf(protocol, route.codecs);
		this.context = new CallContext(
			{
				method: route.method,
				protocolName: protocol.name,
				head: carrier.head,
				values: carrier.values,
				timeoutMs,
				responseHeader: protocol.responseHeader,
				responseTrailer: protocol.responseTrailer,
			},
			environment.clock,
			environment.deadlines,
		);
	}

	get isStream(): boolean {
		return this.plan.route.method.methodKind !== "unary";
	}

	get isOver(): boolean {
		return this.#isOver || this.#closed !== undefined;
	}

	get interceptors(): readonly Interceptor[] {
		return this.plan.route.options.interceptors;
	}

	get observed(): ObservedCall | undefined {
		return this.#observed;
	}

	/** Begins the call: its gate decides whether its body is read. */
	begin(): void {
		const { running } = this.environment;
		this.#running = running.add(this);
		this.carrier.onClose = (reason) => {
			this.#closed = reason;
			this.context.abort(reason);
			this.onClosed?.(reason);
		};
		const end = running.endOf(this);
		if (end !== undefined) {
			this.context.abort(end.reason);
		}
		const { requestGate } = this.plan.route.options;
		try {
			const entered = requestGate?.(this.context);
			if (entered === undefined) {
				this.#admitted();
			} else {
				entered.then(
					() => this.#admitted(),
					(failure: unknown) => this.fail(failure),
				);
			}
		} catch (failure) {
			this.fail(failure);
		}
	}

	#admitted(): void {
		if (this.#isOver) {
			return;
		}
		const { query, protocol, route } = this.plan;
		try {
			if (this.isStream) {
				this.#observed = observe(this.environment.observers, this.context, undefined);
			}
			if (query !== undefined) {
				this.#received(this.codec.decode(query()));
				return;
			}
			const { readMaxBytes } = route.options;
			const options = { codec: this.codec, readMaxBytes };
			this.#reader = protocol.isEnveloped
				? new EnvelopeReader({
						...options,
						methodKind: this.isStream ? "server-streaming" : "unary",
						endFlag: protocol.endFlag,
					})
				: new WholeBodyReader(options, this.carrier.head.header("content-length"));
		} catch (failure) {
			this.fail(failure);
			return;
		}
		this.carrier.read(this);
	}

	data(chunk: Uint8Array): boolean {
		try {
			this.#reader?.add(chunk);
		} catch (failure) {
			this.fail(failure);
		}
		return !this.#isOver;
	}

	end(): void {
		const reader = this.#reader;
		this.#reader = undefined;
		if (reader === undefined || this.#isOver) {
			return;
		}
		let message: Message;
		try {
			message = reader.finish();
		} catch (failure) {
			this.fail(failure);
			return;
		}
		this.#received(message);
	}

	/** Fails the call before its implementation was called, or for a reason other than the implementation. */
	fail(failure: unknown): void {
		this.#failWith(toConnectError(failure), undefined);
	}

	failed(thrown: unknown, pending?: Uint8Array): void {
		if (thrown instanceof ConnectError) {
			this.#failWith(thrown, pending);
			return;
		}
		if (!this.#isOver && !this.context.isAborted) {
			this.environment.onFault?.(this.context, thrown);
		}
		this.#failWith(toConnectError(thrown), pending);
	}

	succeed(output: Message): void {
		if (this.#isOver) {
			return;
		}
		const { protocol } = this.plan;
		try {
			this.#endObservation(undefined);
			const { codec } = this;
			const bytes = protocol.isEnveloped ? codec.envelope(output) : codec.encode(output);
			this.context.abort();
			this.#over(() => protocol.sendMessage(this, bytes));
		} catch (failure) {
			this.fail(failure);
		}
	}

	sendHead(): void {
		this.plan.protocol.sendHead(this);
	}

	endStream(pending: Uint8Array | undefined): void {
		if (!this.#isOver) {
			this.#over(() => {
				this.#endObservation(undefined);
				this.context.abort();
				this.plan.protocol.sendEnd(this, pending, undefined);
			});
		}
	}

	shutDown(reason: unknown): void {
		this.context.abort(reason);
		if (!this.isStream) {
			this.fail(reason);
		}
	}

	#received(message: Message): void {
		if (!this.isStream) {
			const end = this.environment.running.endOf(this);
			if (end !== undefined) {
				this.fail(end.reason);
				return;
			}
			this.#observed = observe(this.environment.observers, this.context, message);
		}
		this.plan.route.serve(this, message);
	}

	#failWith(error: ConnectError, pending: Uint8Array | undefined): void {
		if (this.#isOver) {
			return;
		}
		this.#over(() => {
			this.#endObservation(error);
			this.environment.correctError?.(error);
			this.context.abort(error);
			this.plan.protocol.sendEnd(this, pending, error);
		});
	}

	#endObservation(failure: unknown): void {
		const observed = this.#observed;
		this.#observed = undefined;
		observed?.ended(failure);
	}

	#over(send: () => void): void {
		this.#isOver = true;
		this.#running?.remove();
		try {
			send();
		} catch (failure) {
			// The error, its details, or headers that the implementation has set can't be sent.
			this.context.abort();
			this.environment.onFault?.(this.context, failure);
			this.carrier.cancel();
		}
	}
}

function toConnectError(failure: unknown): ConnectError {
	return failure instanceof ConnectError
		? failure
		: new ConnectError("internal error", Code.Internal, undefined, undefined, failure);
}
