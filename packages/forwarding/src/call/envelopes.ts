const prefixBytes = 5;

/** Whether the body of this content type is a sequence of messages, each behind a prefix of 5 bytes. */
export function isEnveloped(contentType: string | undefined): boolean {
	return (
		contentType !== undefined && /^application\/(?:grpc(?!-web-text)|connect\+)/.test(contentType)
	);
}

/**
 * Follows the prefixes of messages in the chunks of a body, without keeping or decoding a message:
 *
 * ```
 * ┌ flags ┬ length ────┬ message ───────────┬ flags ┬ …
 * │ 1     │ 4          │ length             │ 1     │
 * └───────┴────────────┴────────────────────┴───────┴ …
 *           chunks end anywhere
 * ```
 */
export class Envelopes {
	/** Bytes of the prefix that have arrived, and its length so far. */
	#prefix = 0;
	#length = 0;
	/** Bytes of the message that have not arrived. */
	#missing = 0;
	/** The announced length of the largest message so far, in bytes. */
	largest = 0;

	/** Whether all messages that have begun are complete. */
	get isAtBoundary(): boolean {
		return this.#prefix === 0 && this.#missing === 0;
	}

	/** The next chunk has arrived. */
	add(chunk: Uint8Array): void {
		let position = 0;
		while (position < chunk.length) {
			if (this.#missing > 0) {
				const bytes = Math.min(this.#missing, chunk.length - position);
				this.#missing -= bytes;
				position += bytes;
				continue;
			}
			if (this.#prefix > 0) {
				this.#length = this.#length * 256 + (chunk[position] ?? 0);
			}
			position += 1;
			this.#prefix += 1;
			if (this.#prefix === prefixBytes) {
				this.largest = Math.max(this.largest, this.#length);
				this.#missing = this.#length;
				this.#prefix = 0;
				this.#length = 0;
			}
		}
	}
}
