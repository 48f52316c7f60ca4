/** What watches the messages in the body of a request as their bytes arrive. */
export interface MessageFraming {
	/**
	 * Takes the next bytes of the body and returns what may be handed on so far, which is `chunk` itself
	 * unless a message is held back until it is complete.
	 *
	 * @throws what `onMessage` throws.
	 */
	push(chunk: Uint8Array): readonly Uint8Array[];
	/** Likewise when the body has ended. */
	end(): readonly Uint8Array[];
	/** Bytes that have arrived of a message that is not complete, 0 where there is none. */
	readonly received: number;
	/** The size of that message; `undefined` where it is not known. */
	readonly expected: number | undefined;
}

/** Where the messages of a body are reported to. */
export interface FramingOptions {
	/** Messages of up to this many bytes are handed on as they arrive. */
	readonly freeBytes: number;
	/** Messages of more bytes are refused elsewhere, and handed on as they arrive. */
	readonly maxBytes: number;
	/** Called with a message of between `freeBytes` and `maxBytes` before any of it is handed on. */
	onHeld(message: Uint8Array): void;
	/** Called with the size of each message before its last bytes are handed on. */
	onComplete(size: number): void;
}

/** The body is one message, as in unary calls of the Connect protocol. */
export class WholeBody implements MessageFraming {
	readonly expected: number | undefined;
	readonly #options: FramingOptions;
	#size = 0;
	#hasEnded = false;
	#held: Uint8Array[] = [];

	/** @param expected - the size of the body, where it is known. */
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
			const message = joined(this.#held);
			this.#held = [message];
			onHeld(message);
		}
		onComplete(this.#size);
		return this.#release();
	}

	#release(): readonly Uint8Array[] {
		const released = this.#held;
		this.#held = [];
		return released;
	}
}

const headBytes = 5;

/**
 * The body is a series of messages, each behind a byte of flags and four of length, as in gRPC, gRPC-Web
 * and streams of the Connect protocol. A length is handed on at once, and a message that is held after it.
 */
export class Envelopes implements MessageFraming {
	readonly #options: FramingOptions;
	/** Bytes of the head that have arrived. */
	#head = 0;
	/** The length in the head, as far as it has arrived. */
	#size = 0;
	/** Bytes of the message that are to come. */
	#left = 0;
	#isHeld = false;
	#held: Uint8Array[] = [];

	constructor(options: FramingOptions) {
		this.#options = options;
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
		while (at < chunk.byteLength) {
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
			}
		}
		if (from === 0) {
			return [chunk];
		}
		if (from < at) {
			released.push(chunk.subarray(from));
		}
		return released;
	}

	end(): readonly Uint8Array[] {
		return this.#held;
	}

	#complete(released: Uint8Array[]): void {
		const { onHeld, onComplete } = this.#options;
		if (this.#isHeld) {
			const message = joined(this.#held);
			this.#held = [];
			this.#isHeld = false;
			onHeld(message);
			released.push(message);
		}
		this.#head = 0;
		onComplete(this.#size);
	}
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
	const [first] = chunks;
	return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
}
