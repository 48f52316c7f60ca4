import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { MethodImplSpec } from "@connectrpc/connect";
import { stopIterator } from "@plinth/in-process";
import type { ObservedCall } from "../observers.ts";
import { endOfIteration } from "./end-of-iteration.ts";
import { nextReadyOf } from "./ready-iterator.ts";
import type { Serve, ServedCall } from "./served-call.ts";

type StreamSpec = Extract<MethodImplSpec, { kind: "server_streaming" }>;
type Outputs = AsyncIterable<MessageInitShape<DescMessage>>;

/** Serves a server-streaming method. */
export function serveStream({ impl }: StreamSpec): Serve {
	return (call, message) => {
		const { observed } = call;
		const open = () => impl(message, call.context);
		const within = observed?.run === undefined ? open : () => observed.run?.(open) ?? open();
		void new ResponseStream(call, observed).send(within);
	};
}

/** Messages that are ready are written together, up to this many bytes. */
const batchBytes = 64 * 1024;

/**
 * The messages of a response, on their way from the implementation to the carrier:
 *
 * ```
 * next() ──▶ envelope ──▶ batch ──▶ write, when nothing more is ready in this iteration
 *   ▲                                of the event loop, or the batch is full
 *   └────────── not called until the client has read enough
 * ```
 *
 * An implementation whose iterator has `nextReady` is asked for one message, and at the end of the iteration for all
 * others that have become available: a burst of changes then costs each watch one wait and one write.
 */
class ResponseStream {
	readonly #call: ServedCall;
	readonly #observed: ObservedCall | undefined;
	#iterator: AsyncIterator<MessageInitShape<DescMessage>> | undefined;
	#batch: Uint8Array[] = [];
	#bytes = 0;
	#isScheduled = false;
	/** Resolves when the client has read enough; rejects when it is gone. */
	#blocked: Promise<void> | undefined;

	constructor(call: ServedCall, observed: ObservedCall | undefined) {
		this.#call = call;
		this.#observed = observed;
	}

	async send(open: () => Outputs): Promise<void> {
		const call = this.#call;
		call.onClosed = (reason) => this.#stop(reason);
		try {
			const iterator = open()[Symbol.asyncIterator]();
			this.#iterator = iterator;
			const nextReady = nextReadyOf(iterator);
			// If the client is gone already, an iterator that ignores its signal would wait forever.
			while (!call.isOver) {
				const result = await iterator.next();
				if (call.isOver) {
					break;
				}
				if (result.done === true) {
					this.#iterator = undefined;
					call.endStream(this.#take());
					return;
				}
				this.#add(result.value);
				if (nextReady === undefined) {
					this.#writeSoon();
				} else {
					await this.#sendReady(nextReady);
				}
				if (this.#blocked !== undefined) {
					await this.#blocked;
				}
			}
			this.#stop();
			call.failed(call.context.signal.reason);
		} catch (thrown) {
			this.#stop();
			call.failed(thrown, this.#take());
		}
	}

	/** Stops the iterator, once, so that it releases its resources. If there is a reason, it is thrown into the iterator. */
	#stop(reason?: unknown): void {
		const iterator = this.#iterator;
		this.#iterator = undefined;
		if (iterator !== undefined) {
			stopIterator(iterator, reason);
		}
	}

	/** Sends the batch, and all messages that are ready at the end of this iteration, a full batch in each. */
	async #sendReady(nextReady: () => MessageInitShape<DescMessage> | undefined): Promise<void> {
		for (let isFull = true; isFull; ) {
			await endOfIteration();
			if (this.#blocked !== undefined) {
				await this.#blocked;
			}
			isFull = this.#bytes >= batchBytes;
			while (!isFull && !this.#call.isOver) {
				const output = nextReady();
				if (output === undefined) {
					break;
				}
				this.#add(output);
				isFull = this.#bytes >= batchBytes;
			}
			this.#write();
		}
	}

	#add(output: MessageInitShape<DescMessage>): void {
		const { codec } = this.#call;
		const envelope = codec.envelope(codec.complete(output));
		this.#batch.push(envelope);
		this.#bytes += envelope.byteLength;
		this.#observed?.sent?.();
	}

	#writeSoon(): void {
		if (this.#bytes >= batchBytes) {
			this.#write();
		} else if (!this.#isScheduled) {
			this.#isScheduled = true;
			// It runs when no microtask is left, so that nothing more is ready.
			process.nextTick(this.#onTick);
		}
	}

	readonly #onTick = (): void => {
		this.#isScheduled = false;
		try {
			this.#write();
		} catch (failure) {
			// If the client is gone, the call was notified. If the head can't be sent, nothing else can.
			if (!this.#call.isOver) {
				this.#stop();
				this.#call.failed(failure);
			}
		}
	};

	#write(): void {
		const data = this.#take();
		if (data === undefined || this.#call.isOver) {
			return;
		}
		this.#call.sendHead();
		const written = this.#call.carrier.write(data);
		if (written === undefined) {
			this.#observed?.ready?.();
			return;
		}
		this.#blocked = written.then(() => {
			this.#blocked = undefined;
			this.#observed?.ready?.();
		});
		// If this is a promise, it is awaited before the next message.
		this.#blocked.catch(() => {});
	}

	#take(): Uint8Array | undefined {
		const batch = this.#batch;
		if (batch.length === 0) {
			return undefined;
		}
		this.#batch = [];
		this.#bytes = 0;
		return batch.length === 1 ? batch[0] : Buffer.concat(batch);
	}
}
