import { ByteQueue } from "@plinth/runtime";

/** Finds the messages in the body of a request while it arrives. */
export interface MessageFraming {
	/**
	 * Adds the next bytes of the body, up to the end of the 64th message in them, and returns the bytes that can be passed
	 * on: `chunk` itself, unless a message is held back until it is complete.
	 *
	 * @throws what `onHeld` throws.
	 */
	push(chunk: Uint8Array): readonly Uint8Array[];
	/** The bytes that the last `push` did not add. They are pushed next. */
	readonly rest: Uint8Array | undefined;
	/** The body has ended. Returns the remaining bytes. */
	end(): readonly Uint8Array[];
	/** The bytes that have arrived of an incomplete message; 0 if there is none. */
	readonly received: number;
	/** The size of that message; `undefined` if it is not known. */
	readonly expected: number | undefined;
}

/** Options of a framing. */
export interface FramingOptions {
	/** Messages of up to this many bytes are passed on as they arrive. */
	readonly freeBytes: number;
	/** Larger messages are refused elsewhere, and passed on as they arrive. */
	readonly maxBytes: number;
	/** Called with a message of more than `freeBytes` and up to `maxBytes`, before any of it is passed on. */
	onHeld(message: Uint8Array): void;
	/** Called with the size of each message before its last bytes are passed on. */
	onComplete(size: number): void;
}

/** The body is one message, as in unary calls of the Connect protocol. */
export class WholeBody implements MessageFraming {
	readonly expected: number | undefined;
	readonly rest = undefined;
	readonly #options: FramingOptions;
	#size = 0;
	#hasEnded = false;
	readonly #held = new ByteQueue();

	/** @param expected - the size of the body, if it is known. */
	constructor(options: FramingOptions, expected?: number) {
		this.#options = options;
		this.expected = expected;
	}

	get received(): number {
		return this.#hasEnded ? 0 : this.#size;
	}

	push(chunk: Uint8Array): readonly Uint8Array[] {
		this.#size += chunk.byteLength;
		this.#held.push(chunk);
		return this.#size > this.#options.maxBytes ? this.#release() : [];
	}

	end(): readonly Uint8Array[] {
		const { freeBytes, maxBytes, onHeld, onComplete } = this.#options;
		this.#hasEnded = true;
		if (this.#size > freeBytes && this.#size <= maxBytes) {
			onHeld(this.#held.join());
		}
		onComplete(this.#size);
		return this.#release();
	}

	#release(): readonly Uint8Array[] {
		const released = allOf(this.#held);
		this.#held.clear();
		return released;
	}
}

const headBytes = 5;

/** The most messages that one push adds. Handling so many small ones takes about as long as a call. */
const messagesPerPush = 64;

/**
 * The body is a series of messages, each after a byte of flags and four of length, as in gRPC, gRPC-Web and streams of
 * the Connect protocol. The length is passed on immediately, and a message that is held back follows.
 */
export class Envelopes implements MessageFraming {
	readonly #options: FramingOptions;
	/** The number of head bytes that have arrived. */
	#head = 0;
	/** The length in the head, as far as it has arrived. */
	#size = 0;
	/** The remaining bytes of the message. */
	#left = 0;
	#isHeld = false;
	readonly #held = new ByteQueue();
	#rest: Uint8Array | undefined;

	constructor(options: FramingOptions) {
		this.#options = options;
	}

	get rest(): Uint8Array | undefined {
		return this.#rest;
	}

	get received(): number {
		return this.#head < headBytes ? this.#head : headBytes + this.#size - this.#left;
	}

	get expected(): number | undefined {
		return this.#head < headBytes ? undefined : headBytes + this.#size;
	}

	push(chunk: Uint8Array): readonly Uint8Array[] {
		const { freeBytes, maxBytes } = this.#options;
		const released: Uint8Array[] = [];
		let from = 0;
		let at = 0;
		let messages = 0;
		while (at < chunk.byteLength && messages < messagesPerPush) {
			if (this.#head < headBytes) {
				this.#size = this.#head === 0 ? 0 : this.#size * 256 + (chunk[at] ?? 0);
				this.#head += 1;
				at += 1;
				if (this.#head < headBytes) {
					continue;
				}
				this.#left = this.#size;
				this.#isHeld = this.#size > freeBytes && this.#size <= maxBytes;
				if (this.#isHeld) {
					released.push(chunk.subarray(from, at));
					from = at;
				}
			}
			const taken = Math.min(this.#left, chunk.byteLength - at);
			at += taken;
			this.#left -= taken;
			if (this.#isHeld && taken > 0) {
				this.#held.push(chunk.subarray(from, at));
				from = at;
			}
			if (this.#left === 0) {
				this.#complete(released);
				messages += 1;
			}
		}
		const isAll = at === chunk.byteLength;
		this.#rest = isAll ? undefined : chunk.subarray(at);
		if (from === 0) {
			return [isAll ? chunk : chunk.subarray(0, at)];
		}
		if (from < at) {
			released.push(chunk.subarray(from, at));
		}
		return released;
	}

	end(): readonly Uint8Array[] {
		return allOf(this.#held);
	}

	#complete(released: Uint8Array[]): void {
		const { onHeld, onComplete } = this.#options;
		if (this.#isHeld) {
			const message = this.#held.join();
			this.#held.clear();
			this.#isHeld = false;
			onHeld(message);
			released.push(message);
		}
		this.#head = 0;
		onComplete(this.#size);
	}
}

/** All bytes of a queue, in one piece if there are any. */
function allOf(queue: ByteQueue): readonly Uint8Array[] {
	return queue.length === 0 ? [] : [queue.join()];
}
