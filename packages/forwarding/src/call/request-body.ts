import { Code, ConnectError } from "@connectrpc/connect";
import { ByteQueue } from "@plinth/runtime";
import type { InboundCall } from "../inbound-call.ts";
import type { ForwardingLimits } from "../limits.ts";
import { Envelopes, isEnveloped } from "./envelopes.ts";
import type { KeptBytes } from "./kept-bytes.ts";

/** Where the body of a request is sent to. */
export interface BodyStream {
	/** Whether nothing more can be sent. */
	readonly isClosed: boolean;
	/** Returns false if the next chunk must wait until `onceDrained` calls. */
	write(chunk: Uint8Array): boolean;
	end(chunk?: Uint8Array): void;
	/** Calls the function once, when there is room again. */
	onceDrained(drained: () => void): void;
}

/**
 * The body of a request, on its way to a server. A chunk is taken from the client when the server has room for it.
 *
 * The beginning of the body is kept until `release`, so that all of it can be sent to another server. A body that becomes
 * larger than `keptBytes`, or finds no room in the memory for all calls, can't be repeated from then on.
 */
export class RequestBody {
	readonly #call: InboundCall;
	readonly #limits: Pick<ForwardingLimits, "keptBytes" | "requestBytes">;
	readonly #memory: KeptBytes;
	readonly #onFailed: (failure: unknown) => void;
	readonly #envelopes: Envelopes | undefined;
	/** All that was taken; `undefined` if it is too much. */
	#kept: ByteQueue | undefined = new ByteQueue();
	#keptBytes = 0;
	#bytes = 0;
	#hasEnded = false;
	/** Whether a chunk that can't be kept must not be lost, because nothing of the body is sent yet. */
	#isCollecting = false;
	/** Whether more than the limit is kept, until the body is sent. */
	#isOverfull = false;
	#stream: BodyStream | undefined;
	/** Whether what is kept has not been sent on the stream. */
	#isKeptNext = false;

	/** @param onFailed - called if the client does not send all of it, or sends too much. */
	constructor(
		call: InboundCall,
		limits: Pick<ForwardingLimits, "keptBytes" | "requestBytes">,
		memory: KeptBytes,
		onFailed: (failure: unknown) => void,
	) {
		this.#call = call;
		this.#limits = limits;
		this.#memory = memory;
		this.#onFailed = onFailed;
		this.#envelopes = isEnveloped(call.header("content-type")) ? new Envelopes() : undefined;
	}

	/** Whether all that was taken so far can be sent again. */
	get isRepeatable(): boolean {
		return this.#kept !== undefined && !this.#isOverfull;
	}

	/** The whole body, if it has ended and all of it was kept. */
	get whole(): Uint8Array | undefined {
		return this.#hasEnded ? this.#kept?.join() : undefined;
	}

	/** The beginning of the body, which may be all of it, if what was taken so far was kept. */
	get beginning(): Uint8Array | undefined {
		return this.#kept?.join();
	}

	/** Reads the body, or as much of it as can be kept, without sending it, and calls `done`. */
	collect(done: () => void): void {
		this.#isCollecting = true;
		try {
			for (;;) {
				const chunk = this.#nextChunk();
				if (chunk === undefined) {
					this.#call.wait(() => this.collect(done));
					return;
				}
				if (chunk === "end" || this.#isOverfull) {
					break;
				}
			}
		} catch (failure) {
			this.#onFailed(failure);
			return;
		}
		this.#isCollecting = false;
		done();
	}

	/** Sends the body from its beginning. */
	sendTo(stream: BodyStream): void {
		this.#stream = stream;
		this.#isKeptNext = true;
		this.#pump(stream);
	}

	/** Sends nothing more on the current stream. */
	stop(): void {
		this.#stream = undefined;
	}

	/** The body need not be sent again. */
	release(): void {
		this.#kept = undefined;
		this.#memory.give(this.#keptBytes);
		this.#keptBytes = 0;
	}

	#pump(stream: BodyStream): void {
		try {
			while (stream === this.#stream && !stream.isClosed) {
				const chunk = this.#nextChunk();
				if (chunk === undefined) {
					this.#call.wait(() => this.#pump(stream));
					return;
				}
				if (chunk === "end") {
					this.stop();
					stream.end();
					return;
				}
				if (!stream.write(chunk)) {
					stream.onceDrained(() => this.#pump(stream));
					return;
				}
			}
		} catch (failure) {
			this.#onFailed(failure);
		}
	}

	#nextChunk(): Uint8Array | "end" | undefined {
		if (this.#isKeptNext) {
			this.#isKeptNext = false;
			const kept = this.#kept?.join();
			if (kept !== undefined && kept.length > 0) {
				return kept;
			}
		}
		const chunk = this.#hasEnded ? "end" : this.#call.take();
		if (chunk === "end") {
			this.#hasEnded = true;
		} else if (chunk !== undefined) {
			this.#check(chunk);
			this.#keep(chunk);
		}
		return chunk;
	}

	/** @throws ConnectError ResourceExhausted if the request is too large. */
	#check(chunk: Uint8Array): void {
		const { requestBytes } = this.#limits;
		this.#bytes += chunk.length;
		this.#envelopes?.add(chunk);
		const bytes = this.#envelopes?.largest ?? this.#bytes;
		if (bytes > requestBytes) {
			throw new ConnectError(
				`the request message has at least ${bytes} bytes: the agent forwards at most ${requestBytes} (limits.requestBytes)`,
				Code.ResourceExhausted,
			);
		}
	}

	#keep(chunk: Uint8Array): void {
		if (this.#kept === undefined) {
			return;
		}
		const fits = !this.#isOverfull && this.#takeMemory(chunk.length);
		if (!fits && !this.#isCollecting) {
			this.release();
			return;
		}
		this.#isOverfull ||= !fits;
		this.#kept.push(chunk);
	}

	#takeMemory(bytes: number): boolean {
		const fits = this.#keptBytes + bytes <= this.#limits.keptBytes && this.#memory.take(bytes);
		this.#keptBytes += fits ? bytes : 0;
		return fits;
	}
}
