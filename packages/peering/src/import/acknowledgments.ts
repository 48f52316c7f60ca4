/**
 * Acknowledges what is stored of a stream, with one call at a time: what is stored meanwhile is acknowledged by the next
 * call, which has the newest sequence. So a peer that does not respond keeps one call waiting, however much it sends.
 */
export class Acknowledgments {
	readonly #acknowledge: (sequence: bigint) => Promise<unknown>;
	readonly #onFailure: (reason: unknown) => void;
	#newest = 0n;
	#isSending = false;
	#failure: { readonly reason: unknown } | undefined;

	/** @param onFailure - called once, with why a call has failed: none is made after it. */
	constructor(
		acknowledge: (sequence: bigint) => Promise<unknown>,
		onFailure: (reason: unknown) => void,
	) {
		this.#acknowledge = acknowledge;
		this.#onFailure = onFailure;
	}

	/**
	 * Acknowledges all messages up to that one, and does not wait for the call.
	 *
	 * @throws the reason why an earlier call has failed, so that a stream ends also if its messages keep coming.
	 */
	add(sequence: bigint): void {
		if (this.#failure !== undefined) {
			throw this.#failure.reason;
		}
		this.#newest = sequence;
		if (!this.#isSending) {
			void this.#send();
		}
	}

	/** Calls until the newest sequence is acknowledged. Never rejects. */
	async #send(): Promise<void> {
		this.#isSending = true;
		try {
			let sent: bigint;
			do {
				sent = this.#newest;
				await this.#acknowledge(sent);
			} while (sent !== this.#newest);
		} catch (reason) {
			this.#failure = { reason };
			this.#onFailure(reason);
		}
		this.#isSending = false;
	}
}
